"""The trials of a sweep, and the file that says which run each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legnn.config import ResolvedSettings, Settings
from legnn.data import GraphData
from legnn.errors import InputError
from legnn.files import digest_bytes
from legnn.runs.folder import SWEEP, RunFolder
from legnn.typed_json import read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run of a sweep."""

    name: str
    """Run folder in that of the sweep."""
    data: str | GraphData
    """A named data set, a folder, or a graph in memory."""
    settings: Settings
    hidden_fold: tuple[int, int] | None = None
    """The fold of training nodes whose labels are removed, and the number of folds; see `hide_fold`."""
    epochs: int | None = None
    """The epoch after which it is paused; None for the end of the run."""
    held_out: bool = False
    """Whether the probabilities of validation and test nodes are written, too."""
    deadline: float | None = None
    """When training ends at the latest, by `time.monotonic`."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run in the plan file."""

    digest: str
    """Digest of the resolved settings and the data."""
    preset: str
    values: dict[str, Any]
    """Settings by name."""


@dataclass(frozen=True)
class PlanFile:
    """The content of the plan file."""

    runs: dict[str, PlannedRun]
    """By name."""


class Plan:
    """The runs of a sweep, each written down before it begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = read_json(folder / SWEEP, PlanFile).runs if (folder / SWEEP).is_file() else {}

    def add(self, name: str, unresolved: Settings, settings: ResolvedSettings, fingerprint: str) -> None:
        """Adds a run with `unresolved` settings, which resolve to `settings`.

        Raises `InputError` if the plan or the folder of the run holds another one of that name.
        """
        digest, run = _digest(settings, fingerprint), RunFolder(self.folder / name)
        is_begun = run.is_finished or run.is_begun
        planned = self.runs.get(name)
        if (planned is None and is_begun) or (planned is not None and planned.digest != digest):
            raise InputError(
                f"{run.path} belongs to other settings or data; give another folder as `out`, or remove this one first"
            )
        if is_begun:
            # a run decides these when it starts, by the memory of its device
            chosen = {f"train.{name}": getattr(settings.train, name) for name in ("batch", "precision")}
            if _digest(run.settings.override(chosen), run.card.fingerprint) != digest:
                raise InputError(f"{run.path} is a run on other data or with other settings than its sweep planned")
        if planned is None:
            self.runs[name] = PlannedRun(digest=digest, preset=unresolved.preset, values=dict(unresolved.values))
            write_json(self.folder / SWEEP, PlanFile(self.runs))


def _digest(settings: ResolvedSettings, fingerprint: str) -> str:
    return digest_bytes(f"{settings.digest}{fingerprint}".encode())
