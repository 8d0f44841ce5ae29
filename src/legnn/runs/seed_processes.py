"""Runs of several seeds in this process and in others, where one run leaves cores or GPUs idle."""

from __future__ import annotations

import pickle
import time
from collections import deque
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from legnn.config import ResolvedSettings
from legnn.data import GraphData
from legnn.errors import Interrupted, LegnnError
from legnn.runs.build import epochs_of
from legnn.runs.device import visible_gpus
from legnn.runs.in_order import InOrder
from legnn.runs.progress import Callbacks
from legnn.runs.resources import multiplications
from legnn.runs.result import Result
from legnn.runs.session import start_or_continue
from legnn.runs.task_server import Signals
from legnn.runs.worker_process import Failure
from legnn.runs.workers import carry_out

WORTH_SECONDS = 10.0
"""Estimated seconds of all runs, one after the other, below which no process is started: each takes two or three to
import PyTorch."""
SHORTEST_EPOCH = 0.004
"""Seconds that an epoch takes on the smallest graph."""
PASSES, SPEED = 4, 4e10
"""Forward passes that an epoch is worth, and multiplications a second of one core."""
REPORT_SECONDS = 0.25
"""How long epochs wait to be reported together."""


class Stopped(NamedTuple):
    """A run that was asked to stop; its checkpoint is written."""

    epoch: int | None


Outcome = Result | LegnnError | Stopped


def train_seed(seed: int, signals: Signals, *, runs: bytes) -> Outcome:
    """Trains one seed in a process that serves many; `runs` is a `SameRuns`, pickled once for all of them."""
    if signals.should_stop():
        return Stopped(None)
    reports = _Reports(signals)
    callbacks = Callbacks(
        on_epoch=partial(reports.add, "on_epoch"),
        should_stop=signals.should_stop,
        on_stage=partial(reports.add, "on_stage"),
    )
    try:
        return _unpickled(runs).train(seed, callbacks)
    except Interrupted as stop:
        return Stopped(stop.epoch)
    except LegnnError as error:
        return error
    finally:
        reports.send()


class _Reports:
    """What a run reports, sent several at a time."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._waiting: list[tuple[str, Any]] = []
        self._sent = time.monotonic()

    def add(self, name: str, value: Any) -> None:
        self._waiting.append((name, value))
        if time.monotonic() - self._sent >= REPORT_SECONDS:
            self.send()

    def send(self) -> None:
        self._sent = time.monotonic()
        if self._waiting:
            self._signals.report(self._waiting)
        self._waiting = []


class SameRuns(NamedTuple):
    """Runs on one graph that differ in the seed alone."""

    graph: GraphData
    settings: ResolvedSettings
    out: Path | None

    def train(self, seed: int, callbacks: Callbacks) -> Result:
        """Trains one of them, or goes on with it."""
        return start_or_continue(
            self.graph, self.settings.override({"train.seed": seed}), seed_folder(self.out, seed), callbacks
        )


def seed_folder(out: Path | None, seed: int) -> Path | None:
    """Returns the folder of a seed in the folder of all of them."""
    return None if out is None else out / f"seed-{seed}"


@lru_cache(1)
def _unpickled(runs: bytes) -> SameRuns:
    """Those of all tasks of this process."""
    return pickle.loads(runs)


def train_all(same: SameRuns, runs: InOrder, processes: int) -> None:
    """Trains all of `runs`: in `processes` processes if they take long enough, else one after the other in this one."""
    seeds = deque(runs.seeds)
    if processes > 1 and _estimated_seconds(same, len(seeds)) >= WORTH_SECONDS:
        try:
            pickled = pickle.dumps(same)
        except (pickle.PicklingError, TypeError, AttributeError):
            # it refers to something of the caller's that no other process can have
            pass
        else:
            seeds = _train_elsewhere(same, runs, pickled, processes)
    for seed in seeds:
        if runs.is_stopping:
            return
        runs.pass_on()
        try:
            runs.end(seed, same.train(seed, _callbacks(runs, seed)))
        except Interrupted as stop:
            runs.fail(seed, stop)
        runs.pass_on()


def _train_elsewhere(same: SameRuns, runs: InOrder, pickled: bytes, processes: int) -> deque[int]:
    """Trains in other processes, and returns the seeds whose process was ended: trained here, they say why."""
    waiting, ended = deque(runs.seeds), deque[int]()

    def report(seed: int, reports: list[tuple[str, Any]]) -> None:
        for name, value in reports:
            runs.report(seed, name, value)

    def note(seed: int, outcome: Outcome | Failure) -> None:
        if isinstance(outcome, Failure):
            ended.append(seed)
        elif isinstance(outcome, Stopped):
            runs.fail(seed, Interrupted(outcome.epoch, seed_folder(same.out, seed)))
        elif isinstance(outcome, LegnnError):
            runs.fail(seed, outcome)
        else:
            runs.end(seed, outcome)

    carry_out(
        partial(train_seed, runs=pickled),
        lambda: waiting.popleft() if waiting else None,
        processes,
        gpus=visible_gpus(same.settings.train.device),
        on_outcome=note,
        on_report=report,
        on_poll=lambda busy: runs.pass_on(),
        should_stop=runs.should_stop,
    )
    runs.pass_on()
    return ended


def _callbacks(runs: InOrder, seed: int) -> Callbacks:
    """Callbacks of a run that is trained in this process."""

    def pass_on(name: str, value: Any) -> None:
        runs.report(seed, name, value)
        runs.pass_on()

    return Callbacks(partial(pass_on, "on_epoch"), runs.should_stop, on_stage=partial(pass_on, "on_stage"))


def _estimated_seconds(same: SameRuns, runs: int) -> float:
    epochs = epochs_of(same.settings, same.graph)
    return runs * epochs * max(SHORTEST_EPOCH, PASSES * multiplications(same.settings, same.graph) / SPEED)
