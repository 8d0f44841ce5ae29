"""GCN's propagation without parameters, which several designs share."""

from __future__ import annotations

from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn.normalization import Normalization
from legnn.ops import propagate_messages

GCN_NORMALIZATION = Normalization("relation", target=-0.5, source=-0.5, zero_degree=0.0)
"""`D^{-1/2} A D^{-1/2}`."""


def gcn_propagate(graph: LabelGraph, x: Tensor) -> Tensor:
    """`Â x` `[M, D]` for `x` `[N, D]`, `Â = D^{-1/2} A D^{-1/2}` with the degrees of the whole graph."""
    scales = GCN_NORMALIZATION.scales(graph, x, enhanced=False)[0]
    return propagate_messages(graph, x, None, None, scales, update_labels=False)[0]
