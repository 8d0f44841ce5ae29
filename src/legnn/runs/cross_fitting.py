"""The folder of a finished cross-fitting: scores, and predictions of training nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from legnn.config import Settings
from legnn.errors import InputError
from legnn.io.table_files import read_table
from legnn.lazy import pandas as pd
from legnn.notes import Note
from legnn.runs.folder import CROSS_FIT, SUMMARY
from legnn.runs.result import MeanScores
from legnn.training import Scores
from legnn.typed_json import read_json

CROSS_FITTED = "cross_fitted.parquet"


@dataclass(frozen=True, kw_only=True)
class CrossFitPlan:
    """The content of `cross_fit.json`: the settings of the user, which each fold resolves for itself."""

    folds: int
    preset: str
    values: dict[str, str | int | float | bool]

    @property
    def settings(self) -> Settings:
        """The settings of every fold."""
        return Settings(preset=self.preset, values=self.values)


@dataclass(frozen=True, kw_only=True)
class CrossFitResult:
    """The scores of cross-fitting and what they were obtained with."""

    train_cross_fitted: Scores
    """Of the training nodes, each predicted by the model of its fold, which was trained without the fold's labels."""
    val: MeanScores | None
    test: MeanScores | None
    """Mean over the models, each of which has fewer training labels than a run on all of them."""
    folds: int
    models: int
    """A fold without training nodes needs none."""
    seconds: float
    parameters: int
    """Of one model."""
    versions: dict[str, str]
    notes: list[Note]


@dataclass(frozen=True)
class CrossFit:
    """A finished cross-fitting: its scores, and its predictions of training nodes."""

    result: CrossFitResult
    predictions: pd.DataFrame
    """id, label, prediction, confidence and fold of every training node, and `p_CLASS` of every class."""
    folder: Path | None = None
    """Where it was saved, if it was; the runs are in its folders `fold-0`, `fold-1`, …"""

    @classmethod
    def open(cls, folder: str | Path) -> CrossFit:
        """Returns the finished cross-fitting that a folder holds."""
        path = Path(folder)
        if not is_cross_fit_folder(path):
            raise InputError(f"{path} is not a folder of cross-fitted runs: it has no {CROSS_FIT}")
        if not (path / SUMMARY).is_file():
            raise InputError(f"{path} is not finished; continue it with `resume={path}`")
        table = read_table(path / CROSS_FITTED, keys=["id", "label", "prediction"])
        columns = {name: table.columns[name].to_numpy() for name in table.names}
        return cls(read_json(path / SUMMARY, CrossFitResult), pd.DataFrame(columns), path)


def is_cross_fit_folder(path: Path) -> bool:
    """Whether a folder holds cross-fitted runs."""
    return (path / CROSS_FIT).is_file()
