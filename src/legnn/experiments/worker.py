"""A process that trains one planned run after another and keeps the graphs it has loaded."""

from __future__ import annotations

import shutil
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from legnn.config import DataSettings, Settings
from legnn.data import GraphData
from legnn.errors import InputError, Interrupted, OutOfMemory
from legnn.experiments.planned import PlannedRun
from legnn.runs import RunFolder
from legnn.runs.graphs import load_new, reload_graph
from legnn.runs.resources import DEFAULT_BATCH
from legnn.runs.session import Callbacks, continue_run, start_run
from legnn.runs.workers import Signals

GRAPHS = 2
"""Graphs that a process keeps: runs come sorted by data set."""

_graphs: OrderedDict[DataSettings, tuple[GraphData, DataSettings]] = OrderedDict()
"""By the settings that were given: the graph, and the settings that say where it is from."""


class Outcome(NamedTuple):
    """How a run ended."""

    run: PlannedRun
    seconds: float
    error: str | None = None
    """One sentence, if it could not be trained."""
    is_stopped: bool = False
    """Whether it was interrupted; its checkpoint is written."""


def train_in_process(run: PlannedRun, signals: Signals, *, root: Path) -> Outcome:
    """Trains a run in a process that serves tasks, and returns how it ended."""
    return train_planned(run, root, signals.should_stop)


def train_planned(run: PlannedRun, root: Path, should_stop: Callable[[], bool] = lambda: False) -> Outcome:
    """Trains a run, or continues one that was interrupted, and returns how it ended."""
    begin = time.monotonic()
    if should_stop():
        return Outcome(run, 0.0, is_stopped=True)
    try:
        _train(run, run.folder(root), should_stop)
    except Interrupted:
        return Outcome(run, time.monotonic() - begin, is_stopped=True)
    except (InputError, OSError) as error:
        if isinstance(error, InputError):
            run.fail(root, str(error))
        return Outcome(run, time.monotonic() - begin, error=str(error))
    return Outcome(run, time.monotonic() - begin)


def _train(run: PlannedRun, folder: Path, should_stop: Callable[[], bool]) -> None:
    callbacks = Callbacks(lambda log: None, should_stop)
    if (folder / "settings.yaml").is_file():
        found = RunFolder.open(folder)
        if not found.is_finished:
            continue_run(found, reload_graph(found), callbacks)
        return
    # a process that was killed while it made the folder leaves one without settings, which are written last, and a run
    # that failed leaves the reason
    shutil.rmtree(folder, ignore_errors=True)
    graph, settings = _load(run)
    resolved = settings.resolve(graph.facts())
    is_too_large = False
    try:
        start_run(graph, resolved, folder, callbacks)
    except OutOfMemory:
        # several runs share the device: what fits it alone may not fit beside the others
        is_too_large = resolved.train.batch == "auto"
        if not is_too_large:
            raise
    if is_too_large:
        shutil.rmtree(folder, ignore_errors=True)
        start_run(graph, resolved.override(batch=DEFAULT_BATCH), folder, callbacks)


def _load(run: PlannedRun) -> tuple[GraphData, Settings]:
    settings = run.settings
    if settings.data not in _graphs:
        while len(_graphs) >= GRAPHS:
            _graphs.popitem(last=False)
        graph, loaded = load_new(settings, run.source)
        _graphs[settings.data] = graph, loaded.data
    _graphs.move_to_end(settings.data)
    graph, data = _graphs[settings.data]
    return graph, settings.override(**asdict(data))
