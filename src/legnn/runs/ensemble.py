"""Finished runs that predict together: an object like a run, and a folder like a run's.

| file | what it holds |
|---|---|
| `ensemble.json` | the members, their weights, and the temperature |
| `predictions.parquet` | id, prediction, confidence, split of every node |
| `result.json` | the scores; written last, so a folder that has it beside `ensemble.json` is finished |

The folder of several seeds is an ensemble, too: all of its runs with equal weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from torch import Tensor

from legnn.data import GraphData
from legnn.data.summary import missing_class_notes
from legnn.datasets import Source
from legnn.errors import InputError, plural
from legnn.files import write_text
from legnn.io import read_predictions, write_predictions
from legnn.lazy import pandas as pd
from legnn.notes import Note
from legnn.runs.averaging import average
from legnn.runs.class_columns import check_columns
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.digests import check_digest, write_digests
from legnn.runs.ensemble_card import EnsembleCard, Member, average_of_seeds
from legnn.runs.folder import ENSEMBLE, RunFolder
from legnn.runs.graphs import reload_graph
from legnn.runs.result import Result, versions
from legnn.runs.run import (
    Run,
    all_predictions,
    describe,
    predictions_table,
    probabilities_table,
    score_splits,
    top_predictions,
)
from legnn.runs.seeds import SEEDS, is_seeds_folder
from legnn.training import Scores
from legnn.training.inference import class_and_confidence, top_classes
from legnn.typed_json import read_json, to_json


@dataclass(frozen=True)
class Ensemble:
    """Finished runs on the same data that predict together.

    With the probabilities `p_k` and weights `w_k` of its members, it predicts `p = apply_temperature(Σ_k w_k p_k, T)`.

    >>> ensemble = legnn.open_run("runs/auto")
    >>> ensemble.predict()              # its own graph; ensemble.predict(data) for one that has grown
    """

    runs: list[Run]
    """One for each member, with its post-processing; members of the same folder share the model."""
    about: EnsembleCard
    folder: Path

    def __repr__(self) -> str:
        # the scores of several seeds would have to be computed
        result = self.result if self._is_kept else None
        return describe(f"Ensemble of {plural(len(self.members), 'member')}", self.card, result, self.folder)

    @classmethod
    def open(cls, folder: str | Path) -> Ensemble:
        """Returns the finished ensemble that a folder holds, or that of the runs in a folder of several seeds."""
        path = Path(folder)
        if is_ensemble_folder(path):
            about = read_json(path / ENSEMBLE, EnsembleCard)
            check_digest(path / ENSEMBLE)
            if not (path / "result.json").is_file():
                raise InputError(f"{path} is not finished: it has {ENSEMBLE} and no result.json; write it again")
        elif is_seeds_folder(path):
            about = average_of_seeds(path)
        else:
            raise InputError(f"{path} is not an ensemble: it has neither {ENSEMBLE} nor {SEEDS}")
        return cls(_open_runs(path, about.members), about, path)

    @property
    def members(self) -> list[Member]:
        """The members, in the order of `runs`."""
        return self.about.members

    @property
    def card(self) -> DataCard:
        """The data its members were trained on, as the first of them read it."""
        return self.runs[0].card

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """id, prediction, confidence, split of every node; computed where the folder is one of several seeds."""
        if not self._is_kept:
            return self.predict()
        path = self.folder / "predictions.parquet"
        found = read_predictions(path)
        check_digest(path, is_listed=False)
        return found

    @cached_property
    def result(self) -> Result:
        """Its scores; computed where the folder is one of several seeds.

        `parameters` and `epochs` are the sums over its runs, each counted once; there is no best epoch, which is 0.
        """
        if self._is_kept:
            found = read_json(self.folder / "result.json", Result)
            check_digest(self.folder / "result.json")
            return found
        seconds = sum(run.result.seconds for run in self._distinct_runs)
        return self._to_result(*self.probabilities(), seconds, device="auto")

    def predict(
        self, data: Source | None = None, *, top: int | None = None, probabilities: bool = False, device: str = "auto"
    ) -> pd.DataFrame:
        """Returns id, prediction, confidence and split of every node of the labeled type; as in `Run.predict`.

        No prediction depends on the node's own label, since no member's does.
        """
        check_columns(top, probabilities)
        graph, p = self.probabilities(data, device=device)
        if top is not None:
            return top_predictions(graph, top_classes(p, top))
        if probabilities:
            return all_predictions(graph, p)
        return predictions_table(graph, class_and_confidence(p)).frame

    def predict_proba(self, data: Source | None = None, *, device: str = "auto") -> pd.DataFrame:
        """Returns the probability of every class, a column each, by node id; arguments as in `Run.predict`."""
        return probabilities_table(*self.probabilities(data, device=device))

    def evaluate(self, data: Source | None = None, *, device: str = "auto") -> dict[str, Scores | None]:
        """Returns the scores of `train` (own label hidden), `val`, `test`, None without nodes; as in `Run.predict`."""
        return score_splits(*self.labeled_probabilities(data, device=device))

    def probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph that is predicted and the probabilities `[M, C]` of its nodes, in double precision."""
        return self._mix(self._predict_members(data, device))

    def labeled_probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph and the probabilities `[n, C]` of its labeled nodes alone; as in `probabilities`."""
        graph, p = self.probabilities(data, device=device)
        return graph, p[graph.labeled_nodes]

    @property
    def _is_kept(self) -> bool:
        return is_ensemble_folder(self.folder)

    @property
    def _distinct_runs(self) -> list[Run]:
        return list({member.folder: run for member, run in zip(self.members, self.runs, strict=True)}.values())

    def _predict_members(self, data: Source | None, device: str) -> Iterator[tuple[GraphData, Tensor]]:
        """The graph and the probabilities `[M, C]` of each member."""
        for run, graph in zip(self.runs, _load_graphs(self.runs, lambda run: run.load_graph(data)), strict=True):
            yield graph, run.predict_graph(graph, device=device)

    def _mix(self, predicted: Iterable[tuple[GraphData, Tensor]]) -> tuple[GraphData, Tensor]:
        """The graph as the first member reads it, and the probabilities of all members as one."""
        graphs: list[GraphData] = []

        def noting_graph() -> Iterator[Tensor]:
            for graph, p in predicted:
                graphs.append(graph)
                yield p

        p = average(noting_graph(), [member.weight for member in self.members], self.about.temperature)
        return graphs[0], p

    def _to_result(
        self, graph: GraphData, p: Tensor, seconds: float, notes: Sequence[Note] = (), *, device: str
    ) -> Result:
        scores = score_splits(graph, p[graph.labeled_nodes])
        runs = self._distinct_runs
        precisions = {run.result.precision for run in runs}
        return Result(
            val=scores["val"],
            test=scores["test"],
            train_masked=scores["train"],
            best_epoch=0,
            epochs=sum(run.result.epochs for run in runs),
            seconds=round(seconds, 3),
            parameters=sum(run.result.parameters for run in runs),
            seed=runs[0].result.seed,
            device=hardware(select_device(device)).name,
            precision=precisions.pop() if len(precisions) == 1 else "mixed",
            versions=versions(),
            notes=[*graph.notes, *notes, *missing_class_notes(graph)],
        )


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
    about = EnsembleCard(members=list(members), temperature=temperature, val_accuracy=[None] * len(members))
    runs = _open_runs(path, about.members)
    graphs = _load_graphs(runs, lambda run: reload_graph(RunFolder(run.folder or path), data))
    ensemble = Ensemble([replace(run, graph=graph) for run, graph in zip(runs, graphs, strict=True)], about, path)
    accuracies: list[float | None] = []

    def noting_accuracy() -> Iterator[tuple[GraphData, Tensor]]:
        for graph, p in ensemble._predict_members(None, device):
            val = score_splits(graph, p[graph.labeled_nodes])["val"]
            accuracies.append(None if val is None else val["accuracy"])
            yield graph, p

    graph, p = ensemble._mix(noting_accuracy())
    ensemble = replace(ensemble, about=replace(about, val_accuracy=accuracies))
    # a result that is there already is of other members
    (path / "result.json").unlink(missing_ok=True)
    card, result = to_json(ensemble.about), to_json(ensemble._to_result(graph, p, seconds, notes, device=device))
    predictions = path / "predictions.parquet"
    write_predictions(predictions, predictions_table(graph, class_and_confidence(p)))
    contents = {ENSEMBLE: card.encode(), predictions.name: predictions.read_bytes(), "result.json": result.encode()}
    write_digests(path, contents)
    write_text(path / ENSEMBLE, card)
    write_text(path / "result.json", result)
    return ensemble


def is_ensemble_folder(path: Path) -> bool:
    """Whether a folder holds an ensemble, finished or not."""
    return (path / ENSEMBLE).is_file()


def open_run(path: str | Path) -> Run | Ensemble:
    """Returns the finished run or ensemble that a folder holds; runs of several seeds are an ensemble."""
    path = Path(path)
    return Ensemble.open(path) if is_ensemble_folder(path) or is_seeds_folder(path) else Run.open(path)


def _open_runs(path: Path, members: Sequence[Member]) -> list[Run]:
    """The run of each member with its post-processing; raises `InputError` unless all were trained on the same data."""
    opened = {name: Run.open(path / name) for name in dict.fromkeys(member.folder for member in members)}
    first, *others = opened.values()
    for run in others:
        mine, theirs = (one.predictions[["id", "split"]] for one in (run, first))
        if run.card.classes != first.card.classes or not mine.equals(theirs):
            raise InputError(
                f"{run.folder} was not trained on the nodes, classes and splits of {first.folder}; "
                "an ensemble is of runs on the same data"
            )
    return [member.apply_to(opened[member.folder]) for member in members]


def _load_graphs(runs: Iterable[Run], load: Callable[[Run], GraphData]) -> list[GraphData]:
    """The graph of each run, read once for all runs whose data are the same and prepared alike."""
    graphs: dict[object, GraphData] = {}
    for run in runs:
        if (key := _graph_key(run)) not in graphs:
            graphs[key] = load(run)
    return [graphs[_graph_key(run)] for run in runs]


def _graph_key(run: Run) -> object:
    # a graph that is not their own gets the label–label edges of runs that use them
    return run.settings.data, run.card.fingerprint, run.settings.model.label_edges
