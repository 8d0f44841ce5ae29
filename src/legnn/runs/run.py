"""A finished run as an object: it predicts and evaluates, in memory and from its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from torch import Tensor

from legnn.config import DataSettings, ResolvedSettings
from legnn.data import GraphData
from legnn.data.splits import split_words
from legnn.datasets import Source
from legnn.errors import InputError
from legnn.io import PredictionTable
from legnn.lazy import pandas as pd
from legnn.nn import Model
from legnn.ops.runtime.threads import limit_threads
from legnn.runs.build import make_inference, make_task, restore_model
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import load_graph, reload_graph
from legnn.runs.precision import matrix_products
from legnn.runs.prediction_tables import target_rows
from legnn.runs.predictor import Predictor
from legnn.runs.resources import cpu_threads, explain_out_of_memory, size_of
from legnn.runs.result import Result
from legnn.training import Inference
from legnn.training.inference import top_classes

if TYPE_CHECKING:
    from legnn.io import TableFeatures
    from legnn.runs.representations import NodeRepresentations
    from legnn.training import LayerWise


@dataclass(frozen=True, repr=False)
class Run(Predictor):
    """A finished run.

    >>> run = legnn.train("cora")       # or legnn.open("runs/first")
    >>> run.predict()                   # its own graph; run.predict(data) for one that has grown
    """

    kind: ClassVar[str] = "run"

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

    @property
    def members(self) -> list[Run]:
        """The run itself."""
        return [self]

    @property
    def weights(self) -> list[float]:
        """The weight of the one member."""
        return [1.0]

    @property
    def temperature(self) -> float:
        """Its probabilities are left as they are."""
        return 1.0

    def with_members(self, members: list[Run]) -> Run:
        """Returns the one member."""
        return members[0]

    @property
    def title(self) -> str:
        """The model in a few words."""
        return describe_settings(self.settings)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Returns the finished run that a folder holds."""
        stored = RunFolder.open(Path(folder))
        # first: it says what an unfinished run wants
        model = restore_model(stored)
        table = PredictionTable.from_frame(stored.predictions())
        return cls(model, stored.settings, stored.card, table, stored.result(), stored.path)

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

    def probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph that is predicted and the probabilities `[M, C]` of its nodes; as in `predict`."""
        graph = self.load_graph(data)
        return graph, self.predict_graph(graph, device=device)

    def predict_graph(self, graph: GraphData, *, device: str = "auto") -> Tensor:
        """`[M, C]` the probabilities of the nodes of a graph that `load_graph` returned, on the CPU."""
        return self._infer(graph, device, Inference.predict_proba)

    def _highest(self, data: Source | None, top: int, device: str) -> tuple[GraphData, Tensor]:
        # without all probabilities in memory
        graph = self.load_graph(data)
        return graph, self._infer(graph, device, lambda inference: inference.predict(partial(top_classes, top=top)))

    def _labeled(self, data: Source | None, device: str) -> tuple[GraphData, Tensor]:
        graph = self.load_graph(data)
        nodes = graph.labeled_nodes
        return graph, self._infer(graph, device, lambda inference: inference.proba_of(nodes.to(inference.nodes.device)))

    def representations(self, data: Source | None = None, *, device: str = "auto") -> NodeRepresentations:
        """Returns `Z_N` of every node of the labeled type and the labels' representations; arguments as in `predict`.

        Raises `InputError` for a model that has none, such as label propagation.
        """
        from legnn.runs.representations import NodeRepresentations, compute_representations

        graph = self.load_graph(data)
        rows = target_rows(graph)
        with self.inference(graph, device=device) as (layer_wise, inference):
            arrays = compute_representations(layer_wise, inference)
        y, split = graph.y.numpy()[rows], split_words(graph.split)[rows]
        return NodeRepresentations(**arrays, y=y, split=split, node_id=graph.node_id[rows])

    @contextmanager
    def inference(self, graph: GraphData, *, device: str = "auto") -> Iterator[tuple[LayerWise, Inference]]:
        """Context with the run's model and `graph` on a device: what computes any nodes, and what predicts them all."""
        from legnn.training import LayerWise

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
        from legnn.runs.align import align_to_run

        # another source has splits of its own, if any, and the edges it has: none are drawn by its labels
        drawn = ("split", "validation", "cross_label_edges", "cross_label_seed")
        defaults = {name: getattr(DataSettings, name) for name in drawn}
        settings = replace(self.settings.data, **defaults)
        options = {"training": False, "target_type": self.card.target_type}
        columns = self._table_features
        graph = load_graph(settings, data, columns, **options)
        return align_to_run(graph, self.card, self.predictions, self.settings, columns)

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


def describe_settings(settings: ResolvedSettings) -> str:
    """Returns the model in a few words."""
    model = settings.model
    words = f"{model.backbone.upper()}, {model.labels} labels" if model.architecture == "legnn" else model.architecture
    smooth = "" if model.postprocess == "none" else f", {model.postprocess.replace('_', ' ')}"
    return words + (", AS-Train" if settings.self_training.as_train else "") + smooth
