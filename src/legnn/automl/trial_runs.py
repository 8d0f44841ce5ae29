"""The trials of a search that train at the same time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from contextvars import copy_context
from pathlib import Path

import torch

from legnn.automl.study import Running, Study, Tuned
from legnn.data import GraphData
from legnn.errors import InputError, Interrupted
from legnn.locks import FolderInUse
from legnn.runs import Result, RunFolder
from legnn.runs.progress import Callbacks
from legnn.runs.room import open_room, train_beside_others
from legnn.runs.session import run_steps
from legnn.runs.turns import Turns
from legnn.training import EpochLog
from legnn.training.sharing import Steps, finish


class TrialRun:
    """A trial while it is trained.

    Args:
        trial: what is told how it ends.
        is_over: whether the time of all trials is over, which ends the run as if that had been its last epoch.
        should_stop: whether to write a checkpoint and end.
        on_epoch: called with the trial and each of its epochs.
        is_late: whether it is not to begin any more, which is asked while it waits for the others.
    """

    def __init__(
        self,
        trial: Running,
        is_over: Callable[[], bool],
        should_stop: Callable[[], bool],
        on_epoch: Callable[[Running, EpochLog], None],
        is_late: Callable[[], bool],
    ) -> None:
        self.trial, self.seconds = trial, 0.0
        self.error = ""
        """Why it could not be trained: not the exception, which would keep the memory of the run."""
        self.result: Result | None = None
        self._epoch, self._best, self._on_epoch = 0, -1.0, on_epoch
        self._is_late = is_late
        self.is_waiting = False
        """Whether the time was over before it began."""
        self._callbacks = Callbacks(self._after_epoch, should_stop, lambda: trial.is_pruned(self._epoch) or is_over())

    def steps(self, graph: GraphData, tuned: Tuned, folder: Path) -> Steps[None]:
        """Trains it, or continues it, and counts the seconds of its turns."""
        steps = self._train(graph, tuned, folder)
        while True:
            begin = time.perf_counter()
            try:
                next(steps)
            except StopIteration:
                return
            finally:
                self.seconds += time.perf_counter() - begin
            yield

    def _train(self, graph: GraphData, tuned: Tuned, folder: Path) -> Steps[None]:
        callbacks = self._callbacks
        try:
            settings = tuned.resolve(self.trial.chosen)
            # of a run that goes on: the epochs that it is not asked for again count as well
            self._best = max((log["val_accuracy"] or 0.0 for log in RunFolder(folder).logs()), default=-1.0)
            self.result = yield from train_beside_others(
                graph, settings, lambda: run_steps(graph, settings, folder, callbacks), self._stops_waiting
            )
        except FolderInUse:
            raise
        except Interrupted:
            if not self.is_waiting:
                raise
        except InputError as error:
            # settings that do not fit the graph, a loss that is no longer a number, or too little memory
            self.error = str(error)

    def _stops_waiting(self) -> bool:
        # one that has trained before has something to end with
        self.is_waiting = self._best < 0 and self._is_late()
        return self.is_waiting or self._callbacks.should_stop()

    def _after_epoch(self, log: EpochLog) -> None:
        self._epoch, self._best = log.epoch, max(self._best, log.val_accuracy or 0.0)
        self.trial.report(log.epoch, self._best)
        self._on_epoch(self.trial, log)

    def tell(self) -> None:
        """Ends the trial with what the run came to."""
        if self.is_waiting:
            self.trial.wait()
            return
        if self.result is None:
            self.trial.fail(self.error, self.seconds)
            return
        assert self.result.val is not None
        # a run that was continued counts what it took before
        seconds = max(self.seconds, self.result.seconds)
        is_pruned = self.trial.is_pruned(self.result.epochs)
        (self.trial.prune if is_pruned else self.trial.complete)(self.result.val.accuracy, seconds)


class Round:
    """Trials that were asked for together; of some with the same settings only one is trained.

    Args:
        trials: in the order of their numbers.
        began: when they were asked for, by `time.perf_counter`.
        is_over: whether the time of all trials is over.
        should_stop: asked after every epoch; True writes checkpoints and raises `Interrupted`.
        on_epoch: called with the epochs of the first trial that has not ended.
        has_best: whether there are trials before them, so that the time may be over before one of these begins.
    """

    def __init__(
        self,
        trials: Sequence[Running],
        began: float,
        *,
        is_over: Callable[[], bool],
        should_stop: Callable[[], bool],
        on_epoch: Callable[[Running, EpochLog], None],
        has_best: bool,
    ) -> None:
        self._should_stop, self._on_epoch, self._is_stopping = should_stop, on_epoch, False
        self._has_best = has_best
        # callbacks are the caller's, who may train something else in them that shares nothing with these runs
        self._outside = copy_context()
        self._runs: list[TrialRun] = []
        self._repeated: list[Running] = []
        for trial in trials:
            if any(one.trial.chosen == trial.chosen for one in self._runs):
                self._repeated.append(trial)
            else:
                self._runs.append(TrialRun(trial, is_over, self._ask, self._show, lambda: is_over() and self._has_one))
        self._unfinished = [*self._runs]
        self._asking = (time.perf_counter() - began) / len(self._runs)

    def train(self, start: Callable[[TrialRun], Steps[None]], at_once: int, device: torch.device) -> None:
        """Trains all of them with `start`, one after the other, or several in turns in this process."""
        if at_once == 1:
            for run in self._runs:
                finish(start(run))
                self._unfinished.remove(run)
            return
        turns: Turns[TrialRun, None] = Turns(device, at_once)
        waiting, errors = deque(self._runs), list[Exception]()
        with open_room(), closing(turns):
            while turns or (waiting and not self._is_stopping):
                while waiting and turns.has_place and not self._is_stopping:
                    turns.begin(waiting[0], start(waiting.popleft()))
                for run, _, error in turns.take():
                    self._unfinished.remove(run)
                    if error is not None:
                        # the others write their checkpoints
                        errors.append(error)
                        self._is_stopping = True
        # the others were only asked to stop
        for error in sorted(errors, key=lambda error: isinstance(error, Interrupted)):
            raise error

    @property
    def _has_one(self) -> bool:
        """Whether one of them, or one before them, has ended."""
        return self._has_best or len(self._unfinished) < len(self._runs)

    @property
    def is_late(self) -> bool:
        """Whether the time was over before all of them had begun."""
        return any(run.is_waiting for run in self._runs)

    def tell(self, study: Study) -> None:
        """Tells how they ended, in their order: what comes next does not depend on which was the first."""
        for run in self._runs:
            run.seconds += self._asking
            run.tell()
        for trial in self._repeated:
            earlier = study.earlier(trial)
            if earlier is None:
                trial.wait()
            else:
                trial.end_as(earlier)

    def _ask(self) -> bool:
        # once it said so, all runs stop
        self._is_stopping = self._is_stopping or self._outside.run(self._should_stop)
        return self._is_stopping

    def _show(self, trial: Running, log: EpochLog) -> None:
        if trial is self._unfinished[0].trial:
            self._outside.run(self._on_epoch, trial, log)
