"""Means over the neighbors of nodes, without parameters, which several designs share."""

from __future__ import annotations

from torch import Tensor

from legnn.graph import Adjacency, LabelGraph
from legnn.nn.normalization import Normalization
from legnn.ops import propagate_messages

MEAN = Normalization("relation", target=-1.0, source=0.0, zero_degree=0.0)
"""`D^{-1} A`."""


def neighbor_mean(graph: LabelGraph, x: Tensor) -> Tensor:
    """The mean `[M, D]` of `x` `[N, D]` over the neighbors of each node, zero without any."""
    scales = MEAN.scales(graph, x, enhanced=False)[0]
    return propagate_messages(graph, x, None, None, scales, update_labels=False)[0]


def without_self_loops(graph: LabelGraph) -> LabelGraph:
    """The graph without edges from a node to itself, in which no label is shown; it synchronizes."""
    adjacency = graph.adjacency
    others = adjacency.row != adjacency.col
    weight = None if adjacency.weight is None else adjacency.weight[others]
    size = adjacency.num_rows, adjacency.num_cols
    kept = Adjacency.from_sorted(adjacency.row[others], adjacency.col[others], weight, *size)
    return LabelGraph.without_labels(kept, graph.num_classes)
