"""An experiment: variants of a run as data, and one function from finished runs to a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd

from legnn.datasets import check_source
from legnn.errors import InputError
from legnn.experiments.candidates import CANDIDATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from legnn.experiments.plan import Plan


class Variant(NamedTuple):
    """One way to train: a row of a table or a point of a curve."""

    name: str
    settings: Mapping[str, Any]
    group: str = ""
    """The curve or panel it belongs to."""
    x: float | None = None
    """Its place on the horizontal axis."""
    candidates: Sequence[Mapping[str, Any]] = ()
    """Settings that it tries in the place of those that all others try (`CANDIDATES`); there may be fewer of them."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request of a user to an experiment."""

    data: Sequence[str]
    backbones: Sequence[str]
    seeds: int
    out: Path
    """Run folders are kept below it, and reports in its folder `reports`."""
    preset: str = "simple"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every run."""
    trials: int = 1
    """How many settings each variant tries at most, to go on with the one that is best on validation."""
    only: Sequence[str] = ()
    """Rows by name; all of them if there are none."""
    compare_with: Sequence[Path] = ()
    """CSV files of earlier reports, whose rows are compared together with these."""
    vary_split: bool = False
    """Whether seed `k` trains on split `k` of data sets with several fixed splits."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"seeds must be at least 1, got {self.seeds}")
        if not 1 <= self.trials <= len(CANDIDATES):
            raise InputError(f"trials must be from 1 to {len(CANDIDATES)}, got {self.trials}")
        for source in self.data:
            check_source(source)
        for path in self.compare_with:
            if not path.is_file():
                raise InputError(f"there is no report {path}; give the CSV file that an earlier command wrote")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Result of an experiment."""

    tables: Mapping[str, pd.DataFrame]
    """Tables of the report under their headings."""
    values: pd.DataFrame
    """One row a run or a measurement, for the CSV file."""
    figure: Figure | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure: variants × backbones × data sets × seeds, and `make`, from finished runs to a report."""

    name: str
    kind: Literal["table", "figure"]
    title: str
    make: Callable[[Plan], Report]
    variants: Callable[[str], Sequence[Variant]] = lambda source: ()
    """From the source of a data set to what is trained on it; nothing for a report that needs no run."""
    data: Sequence[str] = ("ogbn-arxiv",)
    backbones: Sequence[str] = ("gat",)
    may_lack_runs: bool = False
    """Whether `make` does without the runs that could not be trained."""

    def check(self, request: Request) -> None:
        """Raises `InputError` for settings that the experiment varies itself."""
        for source in request.data:
            varied = {name for variant in self.variants(source) for name in variant.settings} | {
                "model.backbone",
                "train.seed",
            }
            clash = sorted(varied & set(request.settings))
            if clash:
                raise InputError(f"reproduce {self.name} varies {clash[0]} itself; leave {clash[0]} out")
