"""Trains one planned run, in a process that serves many."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from legnn.errors import FolderInUse, InputError, Interrupted, OutOfMemory
from legnn.experiments.planned import PlannedRun
from legnn.runs.progress import Callbacks
from legnn.runs.task_server import Signals
from legnn.runs.unattended import train_in_folder


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
        train_in_folder(run.settings, run.source, run.folder(root), Callbacks(lambda log: None, should_stop))
    except Interrupted:
        return Outcome(run, time.monotonic() - begin, is_stopped=True)
    except (InputError, OutOfMemory) as error:
        run.fail(root, str(error))
        return Outcome(run, time.monotonic() - begin, error=str(error))
    except (FolderInUse, OSError) as error:
        return Outcome(run, time.monotonic() - begin, error=str(error))
    return Outcome(run, time.monotonic() - begin)
