"""A model computed again with something removed: a shown label, an edge, or the features of a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.training import Inference, LayerWise, Task

Kind = Literal["label", "edge", "features"]


class Removal(NamedTuple):
    """What is removed: the label that `node` shows, the edges between it and the predicted node, or its features."""

    kind: Kind
    node: int


class Rerun(Protocol):
    """Predicts a node that shows no label, with something removed."""

    def __call__(self, node: int, removal: Removal | None) -> Tensor:
        """`[C]` the probabilities of `node`."""

    def shown_to(self, node: int) -> Tensor:
        """The nodes that show their labels when `node` is predicted with nothing removed."""


def without_edges(adjacency: Adjacency, first: int, second: int) -> Adjacency:
    """Returns the adjacency without the edges between two nodes, in either direction."""
    keep = torch.ones(adjacency.num_edges, dtype=torch.bool, device=adjacency.col.device)
    fewer = torch.zeros_like(adjacency.rowptr)
    for row, col in {(first, second), (second, first)}:
        begin, end = adjacency.rowptr[row : row + 2].tolist()
        gone = adjacency.col[begin:end] == col
        keep[begin:end] &= ~gone
        fewer[row + 1] += gone.sum().to(fewer.dtype)
    weight = None if adjacency.weight is None else adjacency.weight[keep]
    rowptr = adjacency.rowptr - fewer.cumsum(0, dtype=fewer.dtype)
    return Adjacency(rowptr, adjacency.col[keep], weight, adjacency.num_cols)


class MeanFeatures:
    """`[F]` the mean features of the nodes of a node's type, which take the place of its own: they tell nothing."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._means: dict[int, Tensor] = {}

    def __call__(self, node: int) -> Tensor:
        """Of the type of `node`."""
        types = self.task.node_type
        kind = 0 if types is None else int(types[node])
        if kind not in self._means:
            self._means[kind] = (self.task.x if types is None else self.task.x[types == kind]).mean(0)
        return self._means[kind]


class WholeGraph:
    """Computes the whole graph again; for any model and post-processing.

    Args:
        shown: the nodes that show their labels.
    """

    def __init__(self, layer_wise: LayerWise, inference: Inference, shown: Tensor) -> None:
        self.layer_wise, self.inference, self.shown = layer_wise, inference, shown
        self._mean = MeanFeatures(layer_wise.task)

    def shown_to(self, node: int) -> Tensor:
        """The same nodes for all."""
        return self.shown

    def __call__(self, node: int, removal: Removal | None) -> Tensor:
        """`[C]` the probabilities of `node`."""
        task, shown = self.layer_wise.task, self.shown
        if removal is not None and removal.kind == "label":
            shown = shown[shown != removal.node]
        elif removal is not None and removal.kind == "edge":
            adjacency = without_edges(task.graph.adjacency, node, removal.node)
            task = replace(task, graph=replace(task.graph, adjacency=adjacency))
        elif removal is not None:
            x = task.x.clone()
            x[removal.node] = self._mean(removal.node)
            task = replace(task, x=x)
        before = self.layer_wise
        again = LayerWise(before.model, task, before.device, before.dtype, plan=before.plan)
        inference = replace(self.inference, predictor=again, task=task)
        return inference.proba(torch.tensor([node], device=shown.device), shown)[0].cpu()
