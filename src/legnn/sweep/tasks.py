"""A task of a sweep: one run to train, or to continue, in its folder. `train_task` is the only way a sweep trains."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from legnn.config import DataSettings, ResolvedSettings, Settings
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import FolderInUse, InputError, Interrupted, LegnnError, OutOfMemory
from legnn.locks import clear_folder, hold_folder
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import MEMORY, check_unchanged, hide_fold, load_new, source_name
from legnn.runs.progress import Callbacks
from legnn.runs.resources import DEFAULT_BATCH
from legnn.runs.run import Run
from legnn.runs.session import resolve_for, start_or_continue
from legnn.sweep.held_out import save_held_out
from legnn.training import EpochLog
from legnn.typed_json import as_kind, parse_json

GRAPH = "graph"
"""Folder in that of a sweep for a graph that was in memory: every process maps it."""
FAILURE = "failure.txt"
"""File in the folder of a run that could not be trained: why."""
CACHED_GRAPHS = 2
"""Graphs that a process caches: the trials of one data set follow each other."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One run, as an executor passes it to a process."""

    name: str
    folder: str
    data: str
    """A named data set, or a folder of tables or of a prepared graph."""
    preset: str
    values: dict[str, Any]
    """Settings by name."""
    hidden_fold: tuple[int, int] | None = None
    """The fold of training nodes whose labels are removed, and the number of folds; see `hide_fold`."""
    epochs: int | None = None
    """The epoch after which the task ends with a checkpoint; None for the end of the run."""
    held_out: bool = False
    """Whether the probabilities of validation and test nodes are written, too."""
    deadline: float | None = None
    """When training ends at the latest, by the monotonic clock of this process."""

    @property
    def settings(self) -> Settings:
        """The settings, as the user and the search left them."""
        return Settings(preset=self.preset, values=self.values)

    def to_json(self) -> str:
        """Returns one line of JSON, with the seconds that are left in place of the deadline."""
        left = None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)
        return json.dumps({**asdict(self), "deadline": left})

    @classmethod
    def from_json(cls, line: str) -> Task:
        """Returns the task of a line, with a deadline by the clock of this process."""
        task: Task = as_kind(parse_json(line.encode()), cls, "the task")
        return task if task.deadline is None else replace(task, deadline=time.monotonic() + task.deadline)


class Event(NamedTuple):
    """Progress of a trial: an epoch, or the stage of a run that is no epoch."""

    trial: str
    log: EpochLog | None = None
    stage: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """End of a task: its state, time and error."""

    trial: str
    state: Literal["finished", "paused", "failed"]
    """A paused run has a checkpoint, from which another task continues it."""
    seconds: float = 0.0
    predict_seconds: float = 0.0
    """Seconds of these for the probabilities of validation and test nodes."""
    error: str = ""
    """One sentence, if it failed."""
    kind: str = ""
    """Name of the class of the error."""

    @classmethod
    def of_error(cls, trial: str, error: Exception, seconds: float = 0.0) -> Outcome:
        """Returns the outcome of a run that cannot be trained."""
        kind = "OSError" if isinstance(error, OSError) else type(error).__name__
        return cls(trial=trial, state="failed", seconds=seconds, error=str(error), kind=kind)

    def raise_error(self) -> None:
        """Raises the error of a failed run."""
        if self.state == "failed":
            kinds = (InputError, OutOfMemory, FolderInUse, OSError)
            raise next((kind for kind in kinds if kind.__name__ == self.kind), RuntimeError)(self.error)


def train_task(
    task: Task, on_event: Callable[[Event], None] = lambda event: None, should_stop: Callable[[], bool] = lambda: False
) -> Outcome:
    """Trains a run in its folder, continues it, or reads it if it is finished."""
    began, epoch = time.monotonic(), 0

    def on_epoch(log: EpochLog) -> None:
        nonlocal epoch
        epoch = log.epoch
        on_event(Event(task.name, log=log))

    callbacks = Callbacks(
        on_epoch,
        should_stop=lambda: should_stop() or epoch == task.epochs,
        should_finish=lambda: task.deadline is not None and time.monotonic() > task.deadline,
        on_stage=lambda title: on_event(Event(task.name, stage=title)),
    )
    folder, predict_seconds = Path(task.folder), 0.0
    try:
        callbacks.on_stage("reading the data")
        graph, settings = resolve_task(task)
        with hold_folder(folder):
            _train(graph, settings, folder, callbacks)
            if task.held_out:
                trained = time.monotonic()
                save_held_out(Run.open(folder), graph)
                predict_seconds = time.monotonic() - trained
    except Interrupted:
        return Outcome(trial=task.name, state="paused", seconds=time.monotonic() - began)
    except (LegnnError, OSError) as error:
        return Outcome.of_error(task.name, error, time.monotonic() - began)
    seconds = time.monotonic() - began
    return Outcome(trial=task.name, state="finished", seconds=seconds, predict_seconds=predict_seconds)


def resolve_task(task: Task) -> tuple[GraphData, ResolvedSettings]:
    """Returns the graph of a task and its settings, with nothing left open."""
    graph, settings = load_cached(task.settings, task.data)
    if task.hidden_fold is not None:
        graph = hide_fold(graph, *task.hidden_fold)
    return resolve_for(graph, settings)


def _train(graph: GraphData, settings: ResolvedSettings, folder: Path, callbacks: Callbacks) -> None:
    resolved = settings
    if RunFolder(folder).is_begun:
        check_unchanged(RunFolder(folder), graph)
        settings = RunFolder(folder).settings
    else:
        (folder / FAILURE).unlink(missing_ok=True)
    is_too_large = False
    try:
        start_or_continue(graph, settings, folder, callbacks)
    except OutOfMemory:
        # several processes share the device: a run that fits it alone may not fit next to the others
        is_too_large = resolved.train.batch == "auto"
        if not is_too_large:
            raise
    # outside of the handler: the exception refers to tensors, whose memory is needed now
    if is_too_large:
        clear_folder(folder)
        start_or_continue(graph, resolved.override({"train.batch": DEFAULT_BATCH}), folder, callbacks)


def load_data(
    settings: Settings, data: Source | None, folder: Path | None = None
) -> tuple[GraphData, Settings, str | GraphData]:
    """Returns the graph of a sweep, its settings, and the data of its trials.

    Args:
        settings: of the runs; they name the data if `data` is None.
        data: as in `train`.
        folder: of a sweep that is continued, which may hold a graph that was in memory.
    """
    if data is None or isinstance(data, str | Path):
        source = settings.data.source if data is None else source_name(data)
        if source == MEMORY and folder is not None:
            if not (folder / GRAPH).is_dir():
                raise InputError(f"{folder} was trained on data in memory; give the same data again")
            source = str((folder / GRAPH).resolve())
        return *load_cached(settings, source), source
    graph, settings = load_new(settings, data)
    graph = with_fingerprint(graph)
    return graph, settings, graph


def with_fingerprint(graph: GraphData) -> GraphData:
    """Returns the graph with its fingerprint stored, which is then not computed again for each trial."""
    return replace(graph, provenance=replace(graph.provenance, fingerprint=graph.fingerprint()))


def load_cached(settings: Settings, data: str) -> tuple[GraphData, Settings]:
    """Returns a graph, read once in a process, and the settings that say where it is from."""
    of_data = {name: value for name, value in settings.values.items() if name.startswith("data.")}
    source = of_data.pop("data.source", data)
    graph, used = _load(settings.preset, tuple(sorted(of_data.items())), data)
    # a graph in memory was written to a folder for this sweep alone
    return graph, settings.override({**used.flat(), "data.source": MEMORY if source == MEMORY else used.source})


@lru_cache(CACHED_GRAPHS)
def _load(preset: str, values: tuple[tuple[str, Any], ...], data: str) -> tuple[GraphData, DataSettings]:
    graph, settings = load_new(Settings(preset=preset, values=dict(values)), data)
    return with_fingerprint(graph), settings.data
