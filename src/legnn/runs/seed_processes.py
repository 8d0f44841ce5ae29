"""Runs of several seeds in this process and in others, where one run leaves cores or GPUs idle."""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from legnn.config import ResolvedSettings
from legnn.data import GraphData
from legnn.errors import InputError, Interrupted
from legnn.runs.build import epochs_of
from legnn.runs.device import visible_gpus
from legnn.runs.in_order import InOrder
from legnn.runs.progress import Callbacks
from legnn.runs.result import Result
from legnn.runs.session import start_or_continue
from legnn.runs.task_server import Signals
from legnn.runs.worker_process import Failure
from legnn.runs.workers import carry_out
from legnn.training import EpochLog

WORTH_SECONDS = 10.0
"""Seconds of training that are left, one run after the other, below which no process is started: each takes two or
three to import PyTorch."""
SHORTEST_EPOCH = 0.004
"""Seconds that an epoch takes on the smallest graph: where so many of them are worth a process, it starts at once."""
TIMED_EPOCHS = 5
"""Epochs after which the seconds of a run are estimated; the first two, which may compile kernels, are left out."""
POLL_SECONDS = 0.1
REPORT_SECONDS = 0.25
"""How long epochs of another process wait to be reported together: each report takes time of the run that is trained
here."""


class Stopped(NamedTuple):
    """A run that was asked to stop; its checkpoint is written."""

    epoch: int | None


Outcome = Result | InputError | Stopped


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
    except InputError as error:
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
        return start_or_continue(self.graph, self.settings.override(seed=seed), seed_folder(self.out, seed), callbacks)


def seed_folder(out: Path | None, seed: int) -> Path | None:
    """Returns the folder of a seed in the folder of all of them."""
    return None if out is None else out / f"seed-{seed}"


@lru_cache(1)
def _unpickled(runs: bytes) -> SameRuns:
    """Those of all tasks of this process."""
    return pickle.loads(runs)


class SeedProcesses:
    """Trains the seeds of `runs` here, one after the other, and in `processes` others if that is worth their start."""

    def __init__(self, same: SameRuns, runs: InOrder, processes: int) -> None:
        self.same, self.runs, self.processes = same, runs, processes
        self._waiting = deque(runs.seeds)
        self._failed: deque[int] = deque()
        """Seeds whose process was ended: they are trained here, where the reason is then known."""
        self._others: threading.Thread | None = None
        self._error: BaseException | None = None
        self._times: list[float] = []

    def train(self) -> None:
        """Trains all of them."""
        try:
            while True:
                while not self.runs.is_stopping and (seed := self._next_here()) is not None:
                    self.runs.pass_on()
                    self._begin_others((1 + len(self._waiting)) * self._epochs * SHORTEST_EPOCH)
                    try:
                        self.runs.end(seed, self.same.train(seed, self._callbacks(seed)))
                    except Interrupted as stop:
                        # perhaps because another process found an error, which says more
                        self.runs.fail(seed, stop)
                    self.runs.pass_on()
                if self._others is None or not self._others.is_alive():
                    break
                self._others.join(POLL_SECONDS)
                self.runs.pass_on()
                self.runs.should_stop()
            self.runs.pass_on()
            if self._error is not None:
                raise self._error
        finally:
            # after an error here, or of a callback: the others write their checkpoints
            self.runs.stop()
            if self._others is not None:
                self._others.join()

    @cached_property
    def _epochs(self) -> int:
        """Of a run, at most."""
        return epochs_of(self.same.settings, self.same.graph) if self.processes else 0

    def _next(self) -> int | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def _next_here(self) -> int | None:
        return self._failed.popleft() if self._failed else self._next()

    def _callbacks(self, seed: int) -> Callbacks:
        """Callbacks of a run that is trained here."""

        def after_epoch(log: EpochLog) -> None:
            self.runs.report(seed, "on_epoch", log)
            self.runs.pass_on()
            self._times.append(time.monotonic())
            if len(self._times) >= TIMED_EPOCHS:
                epoch = (self._times[-1] - self._times[1]) / (len(self._times) - 2)
                self._begin_others((log.epochs - log.epoch + len(self._waiting) * log.epochs) * epoch)

        def on_stage(title: str) -> None:
            self.runs.report(seed, "on_stage", title)
            self.runs.pass_on()

        return Callbacks(after_epoch, self.runs.should_stop, on_stage=on_stage)

    def _begin_others(self, left: float) -> None:
        """Starts other processes, once, if what is `left` takes long enough, in seconds."""
        if self._others is not None or not self._waiting or not self.processes or left < WORTH_SECONDS:
            return
        try:
            runs = pickle.dumps(self.same)
        except (pickle.PicklingError, TypeError, AttributeError):
            # it refers to something of the caller's that no other process can have
            self.processes = 0
        else:
            # not in the thread: by then all of them may be taken
            jobs = min(self.processes, len(self._waiting))
            self._others = threading.Thread(target=self._train_elsewhere, args=(runs, jobs), daemon=True)
            self._others.start()

    def _train_elsewhere(self, runs: bytes, jobs: int) -> None:
        try:
            carry_out(
                partial(train_seed, runs=runs),
                self._next,
                jobs,
                gpus=visible_gpus(self.same.settings.train.device)[1:],
                on_outcome=self._note,
                on_report=self._report,
                should_stop=lambda: self.runs.is_stopping,
            )
        except BaseException as error:
            self._error = error
            self.runs.stop()

    def _report(self, seed: int, reports: list[tuple[str, Any]]) -> None:
        for name, value in reports:
            self.runs.report(seed, name, value)

    def _note(self, seed: int, outcome: Outcome | Failure) -> None:
        if isinstance(outcome, Failure):
            self._failed.append(seed)
        elif isinstance(outcome, Stopped):
            self.runs.fail(seed, Interrupted(outcome.epoch, seed_folder(self.same.out, seed)))
        elif isinstance(outcome, InputError):
            self.runs.fail(seed, outcome)
        else:
            self.runs.end(seed, outcome)
