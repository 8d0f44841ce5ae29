"""Tasks for worker processes: module functions, which another process finds by their names."""

import os
import signal
import time
from pathlib import Path

from legnn.runs.task_server import Signals
from legnn.runs.workers import carry_out
from legnn.training.sharing import Steps

MOST_SECONDS = 60.0


def answer(task: tuple, signals: Signals) -> tuple:
    """Carries out `(kind, argument)` and returns what it came to and the process that did it."""
    kind, *arguments = task
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "raise":
        raise OSError("the disk is full")
    if kind == "wait":
        return _wait(signals), os.getpid()
    if kind == "tell":
        Path(arguments[0]).write_text(str(os.getpid()))
        return _wait(signals), os.getpid()
    return arguments[0] ** 2, os.getpid()


def _wait(signals: Signals) -> str:
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        if signals.should_stop():
            return "stopped"
        if signals.should_pause():
            return "paused"
        time.sleep(0.01)
    return "nobody asked"


def answer_in_turns(task: tuple, signals: Signals) -> Steps[tuple]:
    """`answer`, with a pause wherever it waits, and how many other tasks had begun when it ended."""
    kind, *arguments = task
    _begun.append(task)
    yield
    if kind == "wait":
        end = time.monotonic() + MOST_SECONDS
        while not signals.should_pause() and time.monotonic() < end:
            yield
        return "stopped" if signals.should_stop() else "paused", os.getpid(), len(_begun)
    if kind == "tell and hang":
        Path(arguments[0]).write_text(str(os.getpid()))
        time.sleep(MOST_SECONDS)
    if kind == "kill others" and len(_begun) < 2:
        return "alone", os.getpid(), len(_begun)
    if kind == "kill others":
        os.kill(os.getpid(), signal.SIGKILL)
    return *answer(task, signals), len(_begun)


_begun: list[tuple] = []
"""Tasks that this process has begun."""


def carry_out_list(tasks: list[tuple], jobs: int, function=answer, **options) -> dict:
    """Returns the outcomes by task."""
    waiting, outcomes = list(tasks), {}
    carry_out(
        function, lambda: waiting.pop(0) if waiting else None, jobs,
        on_outcome=lambda task, outcome: outcomes.update({task: outcome}), **options,
    )  # fmt: skip
    return outcomes
