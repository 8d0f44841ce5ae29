"""One candidate as a run folder, trained in a process that serves many."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from legnn.config import Settings
from legnn.errors import FolderInUse, Interrupted, LegnnError, first_line
from legnn.files import write_text
from legnn.runs import RunFolder
from legnn.runs.progress import Callbacks
from legnn.runs.task_server import Signals
from legnn.runs.tensors import load_tensors, save_tensors
from legnn.runs.unattended import FAILURE, train_in_folder
from legnn.sweep.held_out import HELD_OUT, held_out_probabilities

State = Literal["new", "begun", "finished", "failed"]


class CandidateTask(NamedTuple):
    """A candidate to train."""

    name: str
    folder: Path
    source: str
    """Name or folder of the data."""
    values: Mapping[str, Any]
    """Settings by name."""
    deadline: float
    """When training ends at the latest, by `time.time`."""


class CandidateOutcome(NamedTuple):
    """How it ended."""

    seconds: float
    predict_seconds: float = 0.0
    """Of these, for predictions."""
    error: str | None = None
    """One sentence, if it could not be trained."""
    is_paused: bool = False
    """Whether it was interrupted; its checkpoint is written."""


class CandidateFolder:
    """The run folder of a candidate, and what is kept in it beside the run."""

    def __init__(self, path: Path) -> None:
        self.path, self.run = path, RunFolder(path)

    @property
    def state(self) -> State:
        """How far it is."""
        if (self.path / HELD_OUT).is_file() and self.run.is_finished:
            return "finished"
        if (self.path / FAILURE).is_file():
            return "failed"
        return "begun" if RunFolder(self.path).is_begun else "new"

    def curve(self) -> list[float]:
        """The validation accuracy of the best epoch so far, after each epoch."""
        try:
            logs = self.run.logs()
        except FileNotFoundError:  # another process begins the run anew
            return []
        return list(itertools.accumulate((log["val"]["accuracy"] for log in logs), max))

    def fail(self, why: str) -> None:
        """Writes why it cannot be trained."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / FAILURE, why)

    def failure(self) -> str:
        """Returns why it could not be trained."""
        return (self.path / FAILURE).read_text(encoding="utf-8", errors="replace")

    def save_held_out(self, probabilities: Mapping[str, np.ndarray]) -> None:
        """Writes the probabilities of validation and test nodes."""
        save_tensors(self.path / HELD_OUT, {name: torch.from_numpy(p) for name, p in probabilities.items()})

    def held_out(self) -> dict[str, np.ndarray]:
        """Returns the probabilities of validation and test nodes."""
        return {name: tensor.numpy() for name, tensor in load_tensors(self.path / HELD_OUT)[0].items()}


def train_candidate(task: CandidateTask, signals: Signals) -> CandidateOutcome:
    """Trains a candidate, or continues it, until it is over or its deadline has come, and keeps what it predicts."""
    begin = time.monotonic()
    folder = CandidateFolder(task.folder)
    callbacks = Callbacks(lambda log: None, signals.should_pause, lambda: time.time() > task.deadline)
    try:
        settings = Settings(preset="simple", values=task.values)
        run, graph = train_in_folder(settings, task.source, task.folder, callbacks)
        trained = time.monotonic()
        folder.save_held_out(held_out_probabilities(run, graph, device=run.settings.train.device))
    except FolderInUse as error:
        # not a fault of the candidate: another process trains it
        return CandidateOutcome(time.monotonic() - begin, error=str(error), is_paused=True)
    except Interrupted:
        return CandidateOutcome(time.monotonic() - begin, is_paused=True)
    except (LegnnError, OSError) as error:
        folder.fail(str(error))
        return CandidateOutcome(time.monotonic() - begin, error=str(error))
    except Exception as error:
        folder.fail(f"{type(error).__name__}: {first_line(error)}")
        # quietly, with its process: some errors leave a device that nothing can be computed on
        raise SystemExit(1) from error
    return CandidateOutcome(time.monotonic() - begin, time.monotonic() - trained)
