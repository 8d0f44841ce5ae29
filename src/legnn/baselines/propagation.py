"""Propagation without parameters, which several designs share."""

from __future__ import annotations

from torch import Tensor

from legnn.graph import Adjacency, LabelGraph
from legnn.nn.normalization import Normalization
from legnn.ops import Scales, propagate_messages

GCN_NORMALIZATION = Normalization("relation", target=-0.5, source=-0.5, zero_degree=0.0)
"""`D^{-1/2} A D^{-1/2}`."""
MEAN = Normalization("relation", target=-1.0, source=0.0, zero_degree=0.0)
"""`D^{-1} A`."""


def neighbor_sum(graph: LabelGraph, x: Tensor, scales: Scales | None = None) -> Tensor:
    """`A x` `[M, D]` for `x` `[N, D]`, with the factors of `scales`."""
    return propagate_messages(graph, x, None, None, scales or Scales(), update_labels=False)[0]


def gcn_propagate(graph: LabelGraph, x: Tensor) -> Tensor:
    """`Â x` `[M, D]` for `x` `[N, D]`, `Â = D^{-1/2} A D^{-1/2}` with the degrees of the whole graph."""
    return neighbor_sum(graph, x, GCN_NORMALIZATION.scales(graph, x, enhanced=False)[0])


def neighbor_mean(graph: LabelGraph, x: Tensor) -> Tensor:
    """The mean `[M, D]` of `x` `[N, D]` over the neighbors of each node, zero without any."""
    return neighbor_sum(graph, x, MEAN.scales(graph, x, enhanced=False)[0])


def without_self_loops(graph: LabelGraph) -> LabelGraph:
    """The graph without edges from a node to itself, in which no label is shown; it synchronizes."""
    adjacency = graph.adjacency
    others = adjacency.row != adjacency.col
    weight = None if adjacency.weight is None else adjacency.weight[others]
    rows, cols = adjacency.row[others], adjacency.col[others]
    selected = Adjacency.from_sorted(rows, cols, weight, adjacency.num_rows, adjacency.num_cols)
    return LabelGraph.without_labels(selected, graph.num_classes)
