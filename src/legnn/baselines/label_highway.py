"""Graph convolutions over edges and label-aware highways (Chen et al., 2019; Yang et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.baselines.projected import Times, WholeGraphGCN
from legnn.graph import LabelGraph
from legnn.ops import Scales, label_gather, propagate_messages
from legnn.ops.rows import scale_rows


class LabelHighway(WholeGraphGCN):
    """GCN over `U = A ∪ S`: nodes that show the same label are neighbors, `S = Y Yᵀ`.

    `Û = D^{-1/2} U D^{-1/2}`, with the degrees of `U`. `S` is never built: `S x = Y (Yᵀ x)`. Where `A` has an edge
    already, the highway adds nothing to it: `U = A + S - A₁ ∘ S`, where `A₁` is 1 at the edges of `A`.

    It has no stages: a node that shows its label reads all others of its class, in every layer.
    """

    full_batch_reason = "a node reads all others of its class"
    uses_labels = True

    def times(self, graph: LabelGraph, dtype: torch.dtype) -> Times:
        """`x ↦ Û x`."""
        union, scale = graph.cached(("union", dtype), lambda: _union(graph, dtype))
        scales = Scales(source=scale, target=scale, to_label=scale)
        of_shown = scale.index_select(0, graph.shown)

        def multiply(x: Tensor) -> Tensor:
            # (A - A₁ ∘ S) x, and Yᵀ x
            nodes, sums = propagate_messages(union, x, None, None, scales, update_labels=True)
            assert sums is not None
            return nodes.index_add(0, graph.shown, scale_rows(label_gather(graph.to_nodes, sums), of_shown))

        return multiply


def _shared_pairs(graph: LabelGraph) -> Tensor:
    """`[edges]` float: 1 for an edge between nodes that show the same label, once for parallel edges; else 0."""
    row, col = graph.adjacency.row, graph.adjacency.col
    label = graph.to_nodes.label_of
    of_row = label.index_select(0, row)
    is_shared = (of_row >= 0) & (of_row == label.index_select(0, col))
    # columns ascend within a row, so that parallel edges are next to each other
    is_shared[1:] &= (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    return is_shared.to(graph.degree.dtype)


def _union(graph: LabelGraph, dtype: torch.dtype) -> tuple[LabelGraph, Tensor]:
    """The graph of `A - A₁ ∘ S`, with the same labels, and `[M]` `D^{-1/2}` of `U`, 0 for a node without edges."""
    pairs, adjacency = _shared_pairs(graph), graph.adjacency
    weight = (1.0 if adjacency.weight is None else adjacency.weight) - pairs
    union = LabelGraph(adjacency.with_weight_both_ways(weight), graph.shown, graph.y, graph.num_classes)
    # sums of ones are exact in any order
    shared = torch.zeros_like(graph.degree).index_add(0, adjacency.row, pairs)
    others = torch.zeros_like(shared).index_copy(0, graph.shown, graph.label_count.index_select(0, graph.y))
    degree = (graph.degree - shared + others).to(torch.promote_types(dtype, torch.float32))
    return union, degree.pow(-0.5).masked_fill(degree == 0, 0.0)
