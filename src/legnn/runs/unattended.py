"""Runs that nobody watches: begun or continued in their folder, on graphs that a process caches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from legnn.config import DataSettings, Settings
from legnn.data import GraphData
from legnn.errors import OutOfMemory
from legnn.locks import clear_folder, hold_folder
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import check_unchanged, load_new
from legnn.runs.progress import Callbacks
from legnn.runs.resources import DEFAULT_BATCH
from legnn.runs.run import Run
from legnn.runs.session import start_or_continue

FAILURE = "failure.txt"
"""File in the folder of a run that could not be trained: why."""
GRAPHS = 2
"""Graphs that a process caches: runs come sorted by data set."""


def train_in_folder(settings: Settings, source: str, folder: Path, callbacks: Callbacks) -> tuple[Run, GraphData]:
    """Trains a run in `folder`, continues it, or returns it if it is finished; with its graph.

    A graph that does not fit the memory beside those of other processes is trained on in mini-batches.
    """
    graph, settings = load_cached(settings, source)
    with hold_folder(folder):
        _train(graph, settings, folder, callbacks)
        return Run.open(folder), graph


def _train(graph: GraphData, settings: Settings, folder: Path, callbacks: Callbacks) -> None:
    chosen = resolved = settings.resolve(graph.facts())
    if RunFolder(folder).is_begun:
        check_unchanged(RunFolder(folder), graph)
        chosen = RunFolder(folder).settings
    else:
        # it is tried again
        (folder / FAILURE).unlink(missing_ok=True)
    is_too_large = False
    try:
        start_or_continue(graph, chosen, folder, callbacks)
    except OutOfMemory:
        # several processes share the device: what fits it alone may not fit beside the others
        is_too_large = resolved.train.batch == "auto"
        if not is_too_large:
            raise
    # not before the exception, and the tensors it refers to, are gone
    if is_too_large:
        clear_folder(folder)
        start_or_continue(graph, resolved.override({"train.batch": DEFAULT_BATCH}), folder, callbacks)


def load_cached(settings: Settings, source: str) -> tuple[GraphData, Settings]:
    """Returns the graph of `source` and the settings that say where it is from; a process reads it once."""
    settings = settings.override({"data.source": source})
    of_data = {name: value for name, value in settings.values.items() if name.startswith("data.")}
    graph, data = _load(settings.preset, tuple(sorted(of_data.items())))
    return graph, settings.override(data.flat())


@lru_cache(GRAPHS)
def _load(preset: str, given: tuple[tuple[str, Any], ...]) -> tuple[GraphData, DataSettings]:
    values = dict(given)
    graph, settings = load_new(Settings(preset=preset, values=values), values["data.source"])
    return graph, settings.data
