"""Runs in memory and the graph they were trained on: they predict rows that join it, and are pickled as plain data.

The state of a pickle is arrays, settings and weights as safetensors bytes; it holds no module and no code of a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

from legnn.data import GraphData
from legnn.data.splits import MASKS, NO_SPLIT
from legnn.datasets.arrays import EdgeArrays
from legnn.io import PredictionTable
from legnn.lazy import lazy_module
from legnn.ops.csr.adjacency import Adjacency
from legnn.runs.averaging import average
from legnn.runs.build import make_model
from legnn.runs.graphs import load_graph
from legnn.runs.run import Run

if TYPE_CHECKING:
    from torch_geometric.data import Data

pyg_data = lazy_module("torch_geometric.data")

ARRAYS = ("x", "y", "edge_index", "edge_weight", *MASKS)


@dataclass(eq=False)
class FittedGraph:
    """One run, or several with weights, on a graph in memory.

    With the probabilities `p_k` and weights `w_k` of the runs, it predicts `p = apply_temperature(Σ_k w_k p_k, T)`.
    """

    data: Data
    """`ARRAYS` and `class_names`: the graph as it was given."""
    runs: list[Run]
    weights: list[float]
    temperature: float = 1.0
    graph: GraphData = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.graph = self._load(self.data)
        self.runs = [replace(run, graph=self.graph, folder=None) for run in self.runs]

    def predict_own(self, device: str) -> Tensor:
        """`[M, C]` the probabilities of the rows of the graph, each without its own label."""
        return self._mix(lambda run: run.predict_graph(self.graph, device=device))

    def predict_joined(self, x: Tensor, neighbors: np.ndarray, device: str) -> Tensor:
        """`[n, C]` the probabilities of new rows `x` `[n, F]`, each with edges from the rows `neighbors` `[n, k]`.

        No edge leaves a new row, so that a prediction does not depend on the other new rows.
        """
        return self._predict_added(self._join(x, neighbors), device)

    def predict_grown(self, x: Tensor, edges: EdgeArrays, device: str) -> Tensor:
        """`[n, C]` the probabilities of new rows `x` `[n, F]`, with all edges among the rows of the graph and these."""
        data = self.data
        padding = {"y": torch.full((len(x),), -1), **dict.fromkeys(MASKS, torch.zeros(len(x), dtype=torch.bool))}
        fields = {name: torch.cat([data[name], added]) for name, added in {"x": x, **padding}.items()}
        index, weight = torch.cat([data.edge_index, edges.edge_index], 1), None
        if data.get("edge_weight") is not None or edges.weight is not None:
            both = (EdgeArrays(data.edge_index, data.get("edge_weight")), edges)
            weight = torch.cat([torch.ones(e.edge_index.size(1)) if e.weight is None else e.weight for e in both])
        grown = pyg_data.Data(**fields, edge_index=index, edge_weight=weight, class_names=data.class_names)
        return self._predict_added(self._load(grown), device)

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: value.numpy() for name in ARRAYS if (value := self.data.get(name)) is not None}
        runs = [(run.settings, run.card, run.result, _weights_of(run)) for run in self.runs]
        others = {"weights": self.weights, "temperature": self.temperature, "class_names": self.data.class_names}
        return {"arrays": arrays, "runs": runs, **others}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # copies: what a pickle is read from may not be written to
        arrays = {name: torch.from_numpy(np.array(value)) for name, value in state["arrays"].items()}
        self.data = pyg_data.Data(**arrays, class_names=state["class_names"])
        self.weights, self.temperature = state["weights"], state["temperature"]
        self.runs = [_restore(*parts) for parts in state["runs"]]
        self.__post_init__()

    def _load(self, data: Data) -> GraphData:
        # only what is trained on needs a split of its own
        return load_graph(self.runs[0].settings.data, data, training=False)

    def _join(self, x: Tensor, neighbors: np.ndarray) -> GraphData:
        graph, number = self.graph, len(x)
        total = graph.num_nodes + number
        added = torch.arange(graph.num_nodes, total)
        col = torch.from_numpy(np.sort(neighbors, axis=1)).long()
        if self.runs[0].settings.data.self_loops:
            col = torch.cat([col, added[:, None]], 1)
        known = graph.adjacency
        weight = None if known.weight is None else torch.cat([known.weight, torch.ones(col.numel())])
        rows = torch.cat([known.row.long(), added.repeat_interleave(col.size(1))])
        adjacency = Adjacency.from_sorted(rows, torch.cat([known.col.long(), col.flatten()]), weight, total, total)
        split = torch.cat([graph.split, graph.split.new_full((number,), NO_SPLIT)])
        y = torch.cat([graph.y, torch.full((number,), -1)])
        x = torch.cat([graph.x, x])
        return replace(graph, x=x, y=y, adjacency=adjacency, split=split, node_id=np.arange(total))

    def _predict_added(self, graph: GraphData, device: str) -> Tensor:
        nodes = torch.arange(self.graph.num_nodes, graph.num_nodes)

        def predict(run: Run) -> Tensor:
            with run.inference(graph, device=device) as (_, inference):
                return inference.proba(nodes.to(inference.task.train.device)).cpu()

        return self._mix(predict)

    def _mix(self, predict: Callable[[Run], Tensor]) -> Tensor:
        """`apply_temperature(Σ_k w_k p_k, T)` in double precision; the probabilities of one run as they are."""
        if len(self.runs) == 1 and self.temperature == 1:
            return predict(self.runs[0])
        return average((predict(run) for run in self.runs), self.weights, self.temperature)


def _weights_of(run: Run) -> bytes:
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in run.model.state_dict().items()}
    return bytes(save_safetensors(tensors))


def _restore(settings: Any, card: Any, result: Any, weights: bytes) -> Run:
    tensors = load_safetensors(weights)
    model = make_model(settings, card, tensors.get("encoder.label_embedding.features"))
    model.load_state_dict(tensors)
    # the predictions of its own graph are computed when they are asked for
    return Run(model.eval(), settings, card, PredictionTable({}), result)
