"""One training run of an experiment: what it is, and in which folder it is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legnn.config import Settings
from legnn.nn.backbones import require_known_everywhere
from legnn.runs import RunFolder
from legnn.runs.folder import seed_name
from legnn.sweep import Trial
from legnn.sweep.tasks import FAILURE


@dataclass(frozen=True)
class PlannedRun:
    """A data set, settings and a seed. Experiments that need the same run share its folder."""

    source: str
    preset: str
    values: tuple[tuple[str, Any], ...]
    """Settings by name, without the source of the data and the seed."""
    seed: int
    num_splits: int = 1
    """Of so many fixed splits, seed `k` trains on number `k`, and begins again after the last; 1 for the default."""

    @classmethod
    def of(cls, source: str, preset: str, values: Mapping[str, Any], seed: int, *, num_splits: int = 1) -> PlannedRun:
        """Returns the run with settings as a mapping."""
        return cls(source, preset, tuple(sorted(values.items())), seed, num_splits)

    @property
    def settings(self) -> Settings:
        """The settings of the run, as `legnn train` takes them."""
        split = {"data.split": self.seed % self.num_splits} if self.num_splits > 1 else {}
        return Settings(
            preset=self.preset,
            values={**dict(self.values), **split, "data.source": self.source, "train.seed": self.seed},
        )

    def check(self) -> None:
        """Raises `InputError` for a setting or preset that cannot be, before anything is trained."""
        require_known_everywhere(self.settings.values.get("model.backbone", ""))

    @property
    def trial(self) -> Trial:
        """The run as a trial of a sweep."""
        return Trial(name=self.name, data=self.source, settings=self.settings)

    @property
    def name(self) -> str:
        """`DATA/BACKBONE-LABELS-DIGEST/seed-K`, where the digest is of everything but the seed."""
        values = dict(self.values)
        content = json.dumps([self.source, self.preset, self.values, self.num_splits], ensure_ascii=True)
        words = [
            str(values[name]) for name in ("model.architecture", "model.backbone", "model.labels") if name in values
        ]
        words += ["as-train"] if values.get("self_training.as_train") else []
        name = "-".join([*words, hashlib.sha256(content.encode()).hexdigest()[:10]])
        return f"{Path(self.source).name}/{name}/{seed_name(self.seed)}"

    def folder(self, root: Path) -> Path:
        """Returns the folder of the run."""
        return root / self.name

    def has_failed(self, root: Path) -> bool:
        """Whether the run could not be trained when it was tried."""
        return (self.folder(root) / FAILURE).is_file() and self.finished(root) is None

    def finished(self, root: Path) -> RunFolder | None:
        """Returns its folder if the run came to its end, else None."""
        run = RunFolder(self.folder(root))
        return run if run.is_finished else None
