"""One trial of a search, trained in its folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from legnn.automl.study import Running, Tuned
from legnn.data import GraphData
from legnn.errors import InputError, OutOfMemory
from legnn.runs import RunFolder
from legnn.runs.progress import Callbacks
from legnn.runs.session import start_or_continue
from legnn.training import EpochLog


def train_trial(
    trial: Running,
    graph: GraphData,
    tuned: Tuned,
    folder: Path,
    *,
    began: float,
    is_over: Callable[[], bool],
    should_stop: Callable[[], bool],
    on_epoch: Callable[[EpochLog], None],
) -> None:
    """Trains a trial, or continues it, and ends it in its study.

    Args:
        trial: what is trained.
        graph: on what.
        tuned: what the study is about.
        folder: of the run.
        began: when its settings were asked for, by `time.perf_counter`.
        is_over: whether the time of all trials is over, which ends the run as if that had been its last epoch.
        should_stop: asked after every epoch; True writes a checkpoint and raises `Interrupted`.
        on_epoch: called after every epoch.
    """
    # of a run that goes on: the epochs that it is not asked for again count as well
    best = max((log["val"].get("accuracy", 0.0) for log in RunFolder(folder).logs()), default=-1.0)
    epoch = 0

    def after_epoch(log: EpochLog) -> None:
        nonlocal best, epoch
        epoch, best = log.epoch, max(best, log.val.get("accuracy", 0.0))
        trial.report(epoch, best)
        on_epoch(log)

    callbacks = Callbacks(after_epoch, should_stop, lambda: trial.is_pruned(epoch) or is_over())
    try:
        result = start_or_continue(graph, tuned.resolve(trial.chosen), folder, callbacks)
    except (InputError, OutOfMemory) as error:
        # settings that do not fit the graph, a loss that is no longer a number, or too little memory
        trial.fail(str(error), time.perf_counter() - began)
        return
    assert result.val is not None
    # a run that was continued counts what it took before
    seconds = max(time.perf_counter() - began, result.seconds)
    end = trial.prune if trial.is_pruned(result.epochs) else trial.complete
    end(result.val["accuracy"], seconds)
