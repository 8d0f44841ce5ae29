"""A finished run as an object: it predicts and evaluates, in memory and from its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from legnn.config import DataSettings, ResolvedSettings
from legnn.data import GraphData
from legnn.data.splits import SPLIT_NAMES, SPLITS, split_words
from legnn.datasets import Source
from legnn.errors import InputError, plural
from legnn.io import CategoricalColumn, PredictionTable, TableFeatures
from legnn.lazy import pandas as pd
from legnn.nn import Model
from legnn.ops.runtime.threads import limit_threads
from legnn.runs.adopt import adopt_graph
from legnn.runs.build import make_inference, make_task, restore_model
from legnn.runs.class_columns import check_columns, class_columns, top_columns
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import load_graph, reload_graph
from legnn.runs.precision import matrix_products
from legnn.runs.representations import NodeRepresentations, compute_representations
from legnn.runs.resources import cpu_threads, explain_out_of_memory, size_of
from legnn.runs.result import Result
from legnn.training import Inference, LayerWise, Scores, score
from legnn.training.inference import class_and_confidence


@dataclass(frozen=True)
class Run:
    """A finished run.

    >>> run = legnn.train("cora")       # or legnn.Run.open("runs/first")
    >>> run.predict()                   # its own graph; run.predict(data) for one that has grown
    """

    model: Model
    """With the best weights, in evaluation mode."""
    settings: ResolvedSettings
    card: DataCard
    """The data it was trained on."""
    table: PredictionTable = field(repr=False)
    """`predictions`, as columns."""
    result: Result
    folder: Path | None = None
    """Where it was saved, if it was."""
    graph: GraphData | None = field(default=None, repr=False)
    """Its own graph, where it is in memory."""

    @property
    def predictions(self) -> pd.DataFrame:
        """id, prediction, confidence, split of every node of the labeled type; none is predicted from its own label."""
        return self.table.frame

    def __repr__(self) -> str:
        model = self.settings.model
        what = f"{model.labels} {model.backbone}" if model.architecture == "legnn" else model.architecture
        as_train = " with AS-Train" if self.settings.self_training.as_train else ""
        return describe(f"Run of {what}{as_train}", self.card, self.result, self.folder)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Returns the finished run that a folder holds."""
        found = RunFolder.open(Path(folder))
        # first: it says what an unfinished run wants
        model = restore_model(found)
        table = PredictionTable.from_frame(found.predictions())
        return cls(model, found.settings, found.card, table, found.result(), found.path)

    def with_postprocess(self, postprocess: str, *, steps: int | None = None, alpha: float | None = None) -> Run:
        """Returns the run with another post-processing of its probabilities, which nothing has to be trained for.

        >>> run.with_postprocess("correct_and_smooth", alpha=0.8).evaluate()
        """
        values = {
            "model.postprocess": postprocess,
            "model.label_propagation.steps": steps,
            "model.label_propagation.alpha": alpha,
        }
        changed = {name: value for name, value in values.items() if value is not None}
        return replace(self, settings=self.settings.override(changed))

    def predict(
        self, data: Source | None = None, *, top: int | None = None, probabilities: bool = False, device: str = "auto"
    ) -> pd.DataFrame:
        """Returns id, prediction, confidence and split of every node of the labeled type.

        Args:
            data: any graph with the features and classes of the run, such as its own grown by nodes and edges. Nodes
                of the run are recognized by their ids and keep their split; any other node that has a label and is not
                marked val or test shows it. None for the run's own graph.
            top: adds `label`, the true class where it is known, and the classes after the most probable one with their
                probabilities: `prediction_2`, `confidence_2` and so on up to this many.
            probabilities: adds `label` and the probability of every class, `p_CLASS`.
            device: `auto`, `cpu` or `cuda`.

        No prediction depends on the node's own label.
        """
        check_columns(top, probabilities)
        graph = self.load_graph(data)
        if top is not None:
            return top_predictions(graph, self._infer(graph, device, lambda inference: inference.predict_top(top)))
        if probabilities:
            return all_predictions(graph, self._infer(graph, device, Inference.predict_proba))
        return predictions_table(graph, self._infer(graph, device, Inference.predict)).frame

    def predict_proba(self, data: Source | None = None, *, device: str = "auto") -> pd.DataFrame:
        """Returns the probability of every class, a column each, by node id; arguments as in `predict`."""
        return probabilities_table(*self.probabilities(data, device=device))

    def probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph that is predicted and the probabilities `[M, C]` of its nodes; as in `predict`."""
        graph = self.load_graph(data)
        return graph, self.predict_graph(graph, device=device)

    def labeled_probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph and the probabilities `[n, C]` of its labeled nodes alone, in order; as in `predict`."""
        graph = self.load_graph(data)
        nodes = graph.labeled_nodes
        return graph, self._infer(graph, device, lambda one: one.proba_of(nodes.to(one.task.train.device)))

    def predict_graph(self, graph: GraphData, *, device: str = "auto") -> Tensor:
        """`[M, C]` the probabilities of the nodes of a graph that `load_graph` returned, on the CPU."""
        return self._infer(graph, device, Inference.predict_proba)

    def evaluate(self, data: Source | None = None, *, device: str = "auto") -> dict[str, Scores | None]:
        """Returns the scores of `train` (own label hidden), `val` and `test`, None without nodes; as in `predict`."""
        return score_splits(*self.labeled_probabilities(data, device=device))

    def representations(self, data: Source | None = None, *, device: str = "auto") -> NodeRepresentations:
        """Returns `Z_N` of every node of the labeled type and the labels' representations; arguments as in `predict`.

        Raises `InputError` for a model that has none, such as label propagation.
        """
        graph = self.load_graph(data)
        rows = _target_rows(graph)
        with self.inference(graph, device=device) as (layer_wise, inference):
            found = compute_representations(layer_wise, inference)
        y, split = graph.y.numpy()[rows], split_words(graph.split)[rows]
        return NodeRepresentations(**found, y=y, split=split, node_id=graph.node_id[rows])

    @contextmanager
    def inference(self, graph: GraphData, *, device: str = "auto") -> Iterator[tuple[LayerWise, Inference]]:
        """Context with the run's model and `graph` on a device: what computes any nodes, and what predicts them all."""
        where = select_device(device)
        trained = self.settings.train.precision
        # a CPU has no TF32, and predicts in float32
        precision = hardware(where).precision("auto" if trained == "tf32" else trained)
        with (
            explain_out_of_memory(self.settings),
            matrix_products(precision.products),
            limit_threads(cpu_threads(self.settings, graph)),
        ):
            # a copy: the run's own model stays on its device
            model = deepcopy(self.model).to(where)
            task = make_task(self.settings, graph, where, training=False)
            needed = size_of(graph, self.settings).inference_bytes
            plan = hardware(where).plan(task.y.device, task.x.device, needed)
            layer_wise = LayerWise(model, task, where, precision.dtype, plan=plan)
            yield layer_wise, make_inference(layer_wise, model, graph, task, self.settings)

    def load_graph(self, data: Source | None = None) -> GraphData:
        """Returns the graph of `data` in the terms of the run, as `predict` takes it; its own for None."""
        if data is None:
            return self.own_graph()
        if self.card.computed_features:
            return self._same_graph(data)
        # another source has splits of its own, if any, and the edges it has: none are drawn by its labels
        drawn = ("split", "validation", "cross_label_edges", "cross_label_seed")
        defaults = {name: getattr(DataSettings, name) for name in drawn}
        settings = replace(self.settings.data, **defaults)
        options = {"training": False, "target_type": self.card.target_type}
        columns = self._table_features
        graph = load_graph(settings, data, columns, **options)
        return adopt_graph(graph, self.card, self.predictions, self.settings, columns)

    def own_graph(self) -> GraphData:
        """Returns the graph it was trained on, read again where it is not in memory."""
        if self.graph is not None:
            return self.graph
        assert self.folder is not None, "a run that does not have its graph was opened from a folder"
        return reload_graph(RunFolder(self.folder))

    def _infer(self, graph: GraphData, device: str, predict: Callable[[Inference], Tensor]) -> Tensor:
        with self.inference(graph, device=device) as (_, inference):
            return predict(inference).cpu()

    def _same_graph(self, data: Source) -> GraphData:
        """A run whose features were computed from its graph predicts that graph alone, wherever its files are."""
        refusal = (
            f"features of {', '.join(self.card.computed_features)} were computed from the graph that the run was "
            "trained on, and do not exist for another; train on the new graph, or on features of your own"
        )
        try:
            graph = load_graph(self.settings.data, data, self._table_features)
        except InputError as error:
            # the path may be misspelt as well: say what was found there
            raise InputError(f"{refusal} ({error})") from None
        if graph.fingerprint() != self.card.fingerprint:
            raise InputError(refusal)
        return graph

    @property
    def _table_features(self) -> TableFeatures | None:
        if self.graph is not None:
            return cast("TableFeatures | None", self.graph.table_features)
        return None if self.folder is None else RunFolder(self.folder).table_features


def describe(what: str, card: DataCard, result: Result | None, folder: Path | None) -> str:
    """Returns a short paragraph: what was trained on which data, its scores, and where it is kept."""
    parts = [f"{what} on {card.name} ({plural(card.nodes, 'node')}, {len(card.classes)} classes)"]
    if result is not None:
        scores = {"test accuracy": result.test, "validation accuracy": result.val}
        parts += [", ".join(f"{name} {one['accuracy']:.4f}" for name, one in scores.items() if one is not None)]
        best = f"best epoch {result.best_epoch} of {result.epochs}" if result.best_epoch else f"{result.epochs} epochs"
        parts += [f"{best}, {result.parameters:,} parameters, {result.seconds:.1f} s on {result.device}"]
    return "; ".join(filter(None, [*parts, "in memory" if folder is None else f"kept in {folder}"])) + "."


def predictions_table(graph: GraphData, predicted: Tensor) -> PredictionTable:
    """Returns id, prediction, confidence, split of nodes of the labeled type, from class and confidence `[M, 2]`."""
    rows = _target_rows(graph)
    columns = {
        "id": graph.node_id[rows],
        "prediction": CategoricalColumn(graph.class_names, predicted[:, 0].long().numpy()[rows]),
        "confidence": predicted[:, 1].float().numpy()[rows],
        "split": CategoricalColumn(SPLIT_NAMES, graph.split.long().numpy()[rows]),
    }
    return PredictionTable(columns, tuple(map(str, graph.notes)))


def all_predictions(graph: GraphData, p: Tensor) -> pd.DataFrame:
    """Returns the table of predictions with the columns of `class_columns`, from probabilities `[M, C]`."""
    more = class_columns(graph, p, _target_rows(graph))
    return pd.concat([predictions_table(graph, class_and_confidence(p)).frame, more], axis=1)


def top_predictions(graph: GraphData, found: Tensor) -> pd.DataFrame:
    """Returns the table of predictions with those of `top_columns`, from the most probable classes `[M, k, 2]`."""
    more = top_columns(graph, found, _target_rows(graph))
    return pd.concat([predictions_table(graph, found[:, 0]).frame, more], axis=1)


def probabilities_table(graph: GraphData, probabilities: Tensor) -> pd.DataFrame:
    """Returns the probabilities `[M, C]` of nodes of the labeled type by node id, a column for each class."""
    rows = _target_rows(graph)
    index = pd.Index(graph.node_id[rows], name="id")
    return pd.DataFrame(probabilities[rows].float().numpy(), index=index, columns=graph.class_names)


def score_splits(graph: GraphData, p: Tensor) -> dict[str, Scores | None]:
    """Returns the scores of each split, None for one without nodes; `p` `[n, C]` is of `graph.labeled_nodes`."""
    y, split = graph.y[graph.labeled_nodes], graph.split[graph.labeled_nodes]
    return {name: score(p[split == value], y[split == value]) for value, name in enumerate(SPLITS, 1)}


def _target_rows(graph: GraphData) -> Any:
    return slice(None) if graph.node_types is None else graph.node_types.target_mask.numpy()
