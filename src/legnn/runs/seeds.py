"""The folder of a run with several seeds: a run for each, and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from legnn.config import Settings
from legnn.errors import InputError
from legnn.runs.digests import check_digest
from legnn.runs.folder import SEEDS, seed_name
from legnn.typed_json import read_json


@dataclass(frozen=True, kw_only=True)
class SeedPlan:
    """The content of `seeds.json`: the settings of the user, and the seeds."""

    seeds: list[int]
    preset: str
    values: dict[str, str | int | float | bool]

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise InputError("seeds are one or more different numbers from 0 up")

    @property
    def settings(self) -> Settings:
        """The settings of every seed."""
        return Settings(preset=self.preset, values=self.values)


def seed_folders(path: Path) -> list[Path]:
    """Returns the folders of the runs that a folder of several seeds holds."""
    return [path / seed_name(seed) for seed in read_seed_plan(path).seeds]


def read_seed_plan(folder: Path) -> SeedPlan:
    """Returns the plan of a folder of several seeds."""
    if not (folder / SEEDS).is_file():
        raise InputError(f"{folder} is not a folder of several seeds: it has no {SEEDS}")
    plan = read_json(folder / SEEDS, SeedPlan)
    check_digest(folder / SEEDS)
    return plan
