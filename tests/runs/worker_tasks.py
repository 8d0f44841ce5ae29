"""Tasks for worker processes: module functions, which another process finds by their names."""

import os
import signal
import time
from pathlib import Path

from legnn.runs.task_server import Signals
from legnn.runs.workers import carry_out

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
    if kind.endswith("variables"):
        time.sleep(0.5)
        return [os.environ.get(name) for name in arguments], os.getpid()
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


def carry_out_list(tasks: list[tuple], jobs: int, **options) -> dict:
    """Returns the outcomes by task."""
    waiting, outcomes = list(tasks), {}
    carry_out(
        answer, lambda: waiting.pop(0) if waiting else None, jobs,
        on_outcome=lambda task, outcome: outcomes.update({task: outcome}), **options,
    )  # fmt: skip
    return outcomes
