"""Runs of several seeds in this process and in others: on a CPU, where a small run keeps one core busy."""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from legnn.config import ResolvedSettings
from legnn.data import GraphData
from legnn.errors import InputError, Interrupted
from legnn.runs.in_order import InOrder
from legnn.runs.progress import Callbacks
from legnn.runs.result import Result
from legnn.runs.session import start_or_continue
from legnn.runs.task_server import Signals
from legnn.runs.worker_process import Failure
from legnn.runs.workers import carry_out
from legnn.training import EpochLog

WORTH_SECONDS = 20.0
"""Seconds of training that are left, one run after the other, below which no process is started: each takes some to
import PyTorch."""
TIMED_EPOCHS = 5
"""Epochs after which the seconds of a run are estimated; the first two, which may compile kernels, are left out."""
POLL_SECONDS = 0.1


class Stopped(NamedTuple):
    """A run that was asked to stop; its checkpoint is written."""

    epoch: int | None


Outcome = Result | InputError | Stopped


def train_seed(seed: int, signals: Signals, *, graph: bytes, settings: ResolvedSettings, out: Path | None) -> Outcome:
    """Trains one seed in a process that serves many; the graph is pickled once for all of them."""
    callbacks = Callbacks(
        on_epoch=lambda log: signals.report(("on_epoch", log)),
        should_stop=signals.should_stop,
        on_stage=lambda title: signals.report(("on_stage", title)),
    )
    if signals.should_stop():
        return Stopped(None)
    try:
        return start_or_continue(_unpickled(graph), settings.override(seed=seed), seed_folder(out, seed), callbacks)
    except Interrupted as stop:
        return Stopped(stop.epoch)
    except InputError as error:
        return error


def seed_folder(out: Path | None, seed: int) -> Path | None:
    """Returns the folder of a seed in the folder of all of them."""
    return None if out is None else out / f"seed-{seed}"


_graphs: dict[bytes, GraphData] = {}


def _unpickled(graph: bytes) -> GraphData:
    """The graph of all tasks of this process, with what is cached in it."""
    if graph not in _graphs:
        _graphs[graph] = pickle.loads(graph)
    return _graphs[graph]


class SeedProcesses:
    """Trains the seeds of `runs` here, one after the other, and in `processes` others if that is worth their start."""

    def __init__(
        self, graph: GraphData, settings: ResolvedSettings, out: Path | None, runs: InOrder, processes: int
    ) -> None:
        self.graph, self.settings, self.out, self.runs, self.processes = graph, settings, out, runs, processes
        self._waiting = deque(runs.seeds)
        self._failed: deque[int] = deque()
        """Seeds whose process was ended: they are trained here, where the reason is then known."""
        self._others: threading.Thread | None = None
        self._error: BaseException | None = None
        self._times: list[float] = []

    def train(self, start: Callable[[int, Callbacks], Result]) -> None:
        """Trains all of them; `start` trains one here."""
        try:
            while True:
                while not self.runs.is_stopping and (seed := self._next_here()) is not None:
                    self.runs.pass_on()
                    try:
                        self.runs.end(seed, start(seed, self._callbacks(seed)))
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
            self._begin_others(log)

        def on_stage(title: str) -> None:
            self.runs.report(seed, "on_stage", title)
            self.runs.pass_on()

        return Callbacks(after_epoch, self.runs.should_stop, on_stage=on_stage)

    def _begin_others(self, log: EpochLog) -> None:
        """Starts other processes if what is left would take long."""
        self._times.append(time.monotonic())
        is_late = self._others is not None or not self._waiting or not self.processes
        if is_late or len(self._times) < TIMED_EPOCHS:
            return
        epoch = (self._times[-1] - self._times[1]) / (len(self._times) - 2)
        left = (log.epochs - log.epoch + len(self._waiting) * log.epochs) * epoch
        if left < WORTH_SECONDS:
            return
        try:
            graph = pickle.dumps(self.graph)
        except (pickle.PicklingError, TypeError, AttributeError):
            # it refers to something of the caller's that no other process can have
            self.processes = 0
        else:
            self._others = threading.Thread(target=self._train_elsewhere, args=(graph,), daemon=True)
            self._others.start()

    def _train_elsewhere(self, graph: bytes) -> None:
        function = partial(train_seed, graph=graph, settings=self.settings, out=self.out)
        try:
            carry_out(
                function,
                self._next,
                min(self.processes, len(self._waiting)),
                on_outcome=self._note,
                on_report=lambda seed, said: self.runs.report(seed, *said),
                should_stop=lambda: self.runs.is_stopping,
            )
        except BaseException as error:
            self._error = error
            self.runs.stop()

    def _note(self, seed: int, outcome: Outcome | Failure) -> None:
        if isinstance(outcome, Failure):
            self._failed.append(seed)
        elif isinstance(outcome, Stopped):
            self.runs.fail(seed, Interrupted(outcome.epoch, seed_folder(self.out, seed)))
        elif isinstance(outcome, InputError):
            self.runs.fail(seed, outcome)
        else:
            self.runs.end(seed, outcome)
