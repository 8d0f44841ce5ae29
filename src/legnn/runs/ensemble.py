"""Finished runs that predict together: an object like a run, and a folder like a run's.

| file | what it holds |
|---|---|
| `ensemble.json` | the members, their weights, and the temperature |
| `predictions.parquet` | id, prediction, confidence, split of every node |
| the result | the scores; written last, so a folder that has it next to `ensemble.json` is finished |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from torch import Tensor

from legnn.data import GraphData
from legnn.data.summary import missing_class_notes
from legnn.datasets import Source
from legnn.errors import InputError, plural
from legnn.files import digest_bytes, write_text
from legnn.io import read_predictions, write_predictions
from legnn.lazy import pandas as pd
from legnn.notes import Note
from legnn.runs.averaging import average
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.digests import check_digest, write_digests
from legnn.runs.evaluation import score_splits
from legnn.runs.folder import ENSEMBLE, PREDICTIONS, RESULT, SUMMARY, RunFolder
from legnn.runs.graphs import reload_graph
from legnn.runs.prediction_tables import predictions_table
from legnn.runs.predictor import Predictor
from legnn.runs.result import Result, Summary, summarize, versions
from legnn.runs.run import Run
from legnn.runs.seeds import seed_folders
from legnn.training.inference import class_and_confidence
from legnn.typed_json import read_json, to_json, write_json


@dataclass(frozen=True, kw_only=True)
class Member:
    """A run in the folder of an ensemble; one run with two post-processings is two members."""

    folder: str
    """Of the run, relative to that of the ensemble."""
    weight: float
    postprocess: str = "none"
    """In the place of the run's own, as in `Run.with_postprocess`."""
    propagation_steps: int
    propagation_alpha: float

    def apply_to(self, run: Run) -> Run:
        """Returns the run with the member's post-processing."""
        return run.with_postprocess(self.postprocess, steps=self.propagation_steps, alpha=self.propagation_alpha)


@dataclass(frozen=True, kw_only=True)
class EnsembleCard:
    """The content of `ensemble.json`."""

    members: list[Member]
    temperature: float
    """Above 1, probabilities are more even than the weighted mean; below 1, less."""

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("an ensemble has one or more members")
        weights = [member.weight for member in self.members]
        if min(weights) < 0 or not math.isclose(sum(weights), 1, abs_tol=1e-6):
            raise InputError(f"the weights of members are at least 0 and their sum is 1, got {weights}")
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be above 0, got {self.temperature}")


@dataclass(frozen=True, repr=False)
class Ensemble(Predictor):
    """Finished runs on the same data that predict together.

    With the probabilities `p_k` and weights `w_k` of its members, it predicts `p = apply_temperature(Σ_k w_k p_k, T)`.

    >>> ensemble = legnn.open("runs/auto")
    >>> ensemble.predict()              # its own graph; ensemble.predict(data) for one that has grown
    """

    kind: ClassVar[str] = "ensemble"

    members: list[Run]
    """Each with its post-processing; members of the same folder share the model."""
    weights: list[float]
    temperature: float = 1.0
    folder: Path | None = None

    @classmethod
    def open(cls, folder: str | Path) -> Ensemble:
        """Returns the finished ensemble that a folder holds."""
        path = Path(folder)
        if not (path / ENSEMBLE).is_file():
            raise InputError(f"{path} is not an ensemble: it has no {ENSEMBLE}")
        card = read_json(path / ENSEMBLE, EnsembleCard)
        check_digest(path / ENSEMBLE)
        if not (path / RESULT).is_file():
            raise InputError(f"{path} is not finished: it has {ENSEMBLE} and no {RESULT}; write it again")
        weights = [member.weight for member in card.members]
        return cls(_open_members(path, card.members), weights, card.temperature, path)

    @property
    def card(self) -> DataCard:
        """The data its members were trained on, as the first of them read it."""
        return self.members[0].card

    def with_members(self, members: list[Run]) -> Ensemble:
        """Returns the ensemble with other members, which is not stored."""
        return replace(self, members=members, folder=None)

    def with_graph(self, graph: GraphData, folder: Path | None) -> Self:
        """Returns the ensemble with the graph of its members in memory, stored in `folder` or only in memory."""
        members = [
            replace(run, graph=replace(graph, notes=run.card.notes), folder=None if folder is None else run.folder)
            for run in self.members
        ]
        return replace(self, members=members, folder=folder)

    @property
    def title(self) -> str:
        """The number of members."""
        return f"ensemble of {plural(len(self.members), 'member')}"

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """id, prediction, confidence, split of every node; computed where they are not stored."""
        if self.folder is None:
            return self.predict()
        return read_predictions(self.folder / PREDICTIONS)

    @cached_property
    def result(self) -> Result:
        """Its scores; computed where they are not stored.

        `parameters` and `epochs` are the sums over its runs, each counted once; there is no best epoch, which is 0.
        """
        if self.folder is None or not (self.folder / RESULT).is_file():
            return self.to_result(*self.probabilities())
        return read_json(self.folder / RESULT, Result)

    def probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph that is predicted and the probabilities `[M, C]` of its nodes, in double precision."""
        graphs = load_graphs(self.members, lambda run: run.load_graph(data))
        predicted = (run.predict_graph(graph, device=device) for run, graph in zip(self.members, graphs, strict=True))
        return graphs[0], average(predicted, self.weights, self.temperature)

    def to_result(
        self,
        graph: GraphData,
        p: Tensor,
        *,
        seconds: float | None = None,
        notes: Sequence[Note] = (),
        device: str = "auto",
    ) -> Result:
        """Returns the result of the probabilities `p` `[M, C]`; `seconds` are by default those of its runs."""
        scores = score_splits(graph, p[graph.labeled_nodes])
        runs = list({id(run.model): run.result for run in self.members}.values())
        precisions = {result.precision for result in runs}
        return Result(
            val=scores["val"],
            test=scores["test"],
            train_masked=scores["train"],
            best_epoch=0,
            epochs=sum(result.epochs for result in runs),
            seconds=round(sum(result.seconds for result in runs) if seconds is None else seconds, 3),
            parameters=sum(result.parameters for result in runs),
            seed=runs[0].seed,
            device=hardware(select_device(device)).name,
            precision=precisions.pop() if len(precisions) == 1 else "mixed",
            versions=versions(),
            notes=[*graph.notes, *notes, *missing_class_notes(graph)],
        )


@dataclass(frozen=True, repr=False)
class Seeds(Ensemble):
    """The runs of several seeds: they predict the mean of their probabilities.

    >>> seeds = legnn.train_seeds("cora", seeds=5)
    >>> seeds.summary.test["accuracy"].mean     # of the five runs; `seeds.result` has the scores of their average
    """

    kind: ClassVar[str] = "seeds"

    @classmethod
    def open(cls, folder: str | Path) -> Seeds:
        """Returns the runs of a finished folder of several seeds."""
        path = Path(folder)
        folders = [RunFolder(member) for member in seed_folders(path)]
        missing = [run.path.name for run in folders if not run.is_finished]
        if missing and (path / SUMMARY).is_file():
            raise InputError(
                f"{path} was finished, and {missing[0]} in it no longer is; restore it from a copy, or train it again "
                f"with `resume={path}`"
            )
        if missing:
            finished = len(folders) - len(missing)
            raise InputError(
                f"{path} is not finished, {finished} of {len(folders)} seeds are; continue it with `resume={path}`"
            )
        runs = [Run.open(run.path) for run in folders]
        _check_same_data(runs)
        return cls(runs, [1 / len(runs)] * len(runs), folder=path)

    @property
    def title(self) -> str:
        """The model and the number of seeds."""
        return f"{self.members[0].title}, {plural(len(self.members), 'seed')}"

    @cached_property
    def summary(self) -> Summary:
        """Mean and unbiased deviation of every score over the runs."""
        path = None if self.folder is None else self.folder / SUMMARY
        if path is not None and path.is_file():
            return read_json(path, Summary)
        return summarize([run.result for run in self.members])

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """id, prediction, confidence, split of every node, by the mean of the probabilities of all runs."""
        return self.predict()


def write_ensemble(
    folder: str | Path,
    members: Sequence[Member],
    temperature: float,
    *,
    seconds: float,
    notes: Sequence[Note] = (),
    data: Source | None = None,
    device: str = "auto",
) -> Ensemble:
    """Predicts every node with the members, writes the ensemble to `folder`, and returns it with its graph.

    Args:
        folder: that of the ensemble, from which those of the members start; what else is in it stays.
        seconds: what the ensemble took to make, the training of runs that are no members included.
        notes: what a reader should know beside what is known of the data.
        data: the graph again, where the runs were trained on data in memory, or to read it only once.
    """
    path = Path(folder)
    card = EnsembleCard(members=list(members), temperature=temperature)
    runs = _open_members(path, card.members)
    graphs = load_graphs(runs, lambda run: reload_graph(RunFolder(run.folder or path), data))
    weights = [member.weight for member in members]
    runs = [replace(run, graph=graph) for run, graph in zip(runs, graphs, strict=True)]
    ensemble = Ensemble(runs, weights, temperature, path)
    graph, p = ensemble.probabilities(device=device)
    # a result that is there already is of other members
    (path / RESULT).unlink(missing_ok=True)
    write_predictions(path / PREDICTIONS, predictions_table(graph, class_and_confidence(p)))
    text = to_json(card)
    write_digests(path, {ENSEMBLE: digest_bytes(text.encode())})
    write_text(path / ENSEMBLE, text)
    write_json(path / RESULT, ensemble.to_result(graph, p, seconds=seconds, notes=notes, device=device))
    return ensemble


def _open_members(path: Path, members: Sequence[Member]) -> list[Run]:
    """The run of each member with its post-processing; raises `InputError` unless all were trained on the same data."""
    opened = {name: Run.open(path / name) for name in dict.fromkeys(member.folder for member in members)}
    _check_same_data(list(opened.values()))
    return [member.apply_to(opened[member.folder]) for member in members]


def _check_same_data(runs: Sequence[Run]) -> None:
    first, *others = runs
    for run in others:
        splits, expected = (each.predictions[["id", "split"]] for each in (run, first))
        if run.card.classes != first.card.classes or not splits.equals(expected):
            raise InputError(
                f"{run.folder} was not trained on the nodes, classes and splits of {first.folder}; "
                "an ensemble is of runs on the same data"
            )


def load_graphs(runs: Sequence[Run], load: Callable[[Run], GraphData]) -> list[GraphData]:
    """Returns the graph of each run, read once for all runs whose data are the same and prepared alike."""
    graphs: dict[object, GraphData] = {}
    keys = [_graph_key(run) for run in runs]
    for run, key in zip(runs, keys, strict=True):
        if key not in graphs:
            graphs[key] = load(run)
    return [graphs[key] for key in keys]


def _graph_key(run: Run) -> object:
    # a graph that is not their own gets the label–label edges of runs that use them
    return run.settings.data, run.card.fingerprint, run.settings.model.label_edges
