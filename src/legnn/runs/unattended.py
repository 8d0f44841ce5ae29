"""Runs that nobody watches: begun or continued in their folder, on graphs that a process keeps."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path

from legnn.config import DataSettings, ResolvedSettings, Settings
from legnn.data import GraphData
from legnn.errors import OutOfMemory
from legnn.files import empty_folder
from legnn.locks import LOCK, hold_folder
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import check_unchanged, load_new
from legnn.runs.progress import Callbacks
from legnn.runs.resources import DEFAULT_BATCH
from legnn.runs.result import Result
from legnn.runs.room import train_beside_others
from legnn.runs.run import Run
from legnn.runs.session import run_steps
from legnn.training.sharing import Steps

FAILURE = "failure.txt"
"""File in the folder of a run that could not be trained: why."""
GRAPHS = 2
"""Graphs that a process keeps: runs come sorted by data set."""

_graphs: OrderedDict[DataSettings, tuple[GraphData, DataSettings]] = OrderedDict()
"""By the settings that were given: the graph, and the settings that say where it is from."""


def train_in_folder(
    settings: Settings, source: str, folder: Path, callbacks: Callbacks
) -> Steps[tuple[Run, GraphData]]:
    """Trains a run in `folder`, continues it, or returns it if it is finished; with its graph.

    Makes pauses in a process that other runs share. A graph that does not fit the memory beside those of other
    processes is trained on in mini-batches.
    """
    graph, settings = load_kept(settings, source)
    with hold_folder(folder):
        yield from _train(graph, settings, folder, callbacks)
        return Run.open(folder), graph


def _train(graph: GraphData, settings: Settings, folder: Path, callbacks: Callbacks) -> Steps[None]:
    chosen = resolved = settings.resolve(graph.facts())
    if (folder / "settings.yaml").is_file():
        check_unchanged(RunFolder(folder), graph)
        chosen = RunFolder(folder).settings
    else:
        # it is tried again
        (folder / FAILURE).unlink(missing_ok=True)
    is_too_large = False
    try:
        yield from _steps(graph, chosen, folder, callbacks)
    except OutOfMemory:
        # several processes share the device: what fits it alone may not fit beside the others
        is_too_large = resolved.train.batch == "auto"
        if not is_too_large:
            raise
    # not before the exception, and the tensors it refers to, are gone
    if is_too_large:
        empty_folder(folder, keep=LOCK)
        yield from _steps(graph, resolved.override(batch=DEFAULT_BATCH), folder, callbacks)


def _steps(graph: GraphData, settings: ResolvedSettings, folder: Path, callbacks: Callbacks) -> Steps[Result]:
    return train_beside_others(
        graph,
        settings,
        lambda: run_steps(graph, settings, folder, callbacks),
        lambda: callbacks.should_stop() or callbacks.should_finish(),
    )


def load_kept(settings: Settings, source: str) -> tuple[GraphData, Settings]:
    """Returns the graph of `source` and the settings that say where it is from, read once and kept by the process."""
    settings = settings.override(source=source)
    if settings.data not in _graphs:
        while len(_graphs) >= GRAPHS:
            _graphs.popitem(last=False)
        graph, loaded = load_new(settings, source)
        _graphs[settings.data] = graph, loaded.data
    _graphs.move_to_end(settings.data)
    graph, data = _graphs[settings.data]
    return graph, settings.override(**asdict(data))
