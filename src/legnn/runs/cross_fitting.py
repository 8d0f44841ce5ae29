"""The folder of a finished cross-fitting: scores, and predictions of training nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from legnn.config import Settings
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError
from legnn.io.table_files import read_table
from legnn.lazy import pandas as pd
from legnn.notes import Note
from legnn.runs.ensemble import Ensemble
from legnn.runs.folder import CROSS_FIT, SUMMARY, fold_name
from legnn.runs.result import MeanScores
from legnn.runs.run import Run
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


@dataclass(frozen=True, repr=False)
class CrossFit(Ensemble):
    """Runs of which each was trained without the labels of one fold of the training nodes.

    They predict the mean of their probabilities; in their own graph, each training node is predicted by the run that
    was trained without its label.
    """

    kind: ClassVar[str] = "cross_fit"

    scores: CrossFitResult = field(kw_only=True)
    table: pd.DataFrame = field(kw_only=True)

    @classmethod
    def open(cls, folder: str | Path) -> CrossFit:
        """Returns the finished cross-fitting that a folder holds."""
        path = Path(folder)
        if not (path / CROSS_FIT).is_file():
            raise InputError(f"{path} is not a folder of cross-fitted runs: it has no {CROSS_FIT}")
        if not (path / SUMMARY).is_file():
            raise InputError(f"{path} is not finished; continue it with `resume={path}`")
        table = read_table(path / CROSS_FITTED, keys=["id", "label", "prediction"])
        columns = {name: table.columns[name].to_numpy() for name in table.names}
        runs = [Run.open(path / fold_name(fold)) for fold in sorted(set(columns["fold"].tolist()))]
        scores = read_json(path / SUMMARY, CrossFitResult)
        return cls(runs, [1 / len(runs)] * len(runs), folder=path, scores=scores, table=pd.DataFrame(columns))

    @property
    def title(self) -> str:
        """The model and the number of folds."""
        return f"{self.members[0].title}, cross-fitted in {self.scores.folds} folds"

    @property
    def summary(self) -> CrossFitResult:
        """The scores of training nodes, and the means of the others over the runs."""
        return self.scores

    @property
    def predictions(self) -> pd.DataFrame:
        """id, label, prediction, confidence and fold of every training node, and `p_CLASS` of every class."""
        return self.table

    def probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph that is predicted and the probabilities `[M, C]` of its nodes."""
        if data is not None:
            return super().probabilities(data, device=device)
        graphs = [run.own_graph() for run in self.members]
        # each graph has the labels of all folds but one
        y, split = (torch.stack(values).amax(0) for values in zip(*((g.y, g.split) for g in graphs), strict=True))
        mean = torch.zeros(len(y), graphs[0].num_classes, dtype=torch.double)
        cross_fitted: list[tuple[Tensor, Tensor]] = []
        for run, graph, weight in zip(self.members, graphs, self.weights, strict=True):
            p, masked = run.predict_graph(graph, device=device).double(), graph.split != split
            mean += weight * p
            cross_fitted.append((masked, p[masked]))
        for masked, p in cross_fitted:
            mean[masked] = p
        return replace(graphs[0], y=y, split=split), mean
