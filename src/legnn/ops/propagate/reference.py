"""Sums over neighbors and classes in plain PyTorch, as the equations say.

Rows are taken with `index_select`, not with brackets: its gradient is one `index_add`, theirs sorts the indices first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from legnn.ops.rows import scale_rows
from legnn.ops.types import LabelGraphLike, Scales

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency
    from legnn.ops.csr.label_edges import LabelEdges


def neighbor_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`(A x)_i = Σ_j A_ij x_j` `[rows, D]` for `x` `[cols, D]`."""
    messages = x.index_select(0, adjacency.col)
    if adjacency.weight is not None:
        messages = messages * adjacency.weight.to(x.dtype)[:, None]
    return x.new_zeros(adjacency.num_rows, x.size(1)).index_add(0, adjacency.row, messages)


def propagate_messages(
    graph: LabelGraphLike,
    x: Tensor,
    labels: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    *,
    update_labels: bool,
) -> tuple[Tensor, Tensor | None]:
    """`nodes = t ∘ A (s ∘ x) + l ∘ Y labels + add` and `sums = Yᵀ (c ∘ x)`."""
    nodes = scale_rows(neighbor_sum(graph.adjacency, scale_rows(x, scales.source)), scales.target)
    nodes = add_label_messages(graph, nodes, labels, add, scales.from_label)
    if not update_labels:
        return nodes, None
    return nodes, neighbor_sum(graph.to_labels.classes, scale_rows(x, scales.to_label))


def add_label_messages(
    graph: LabelGraphLike, nodes: Tensor, labels: Tensor | None, add: Tensor | None, scale: Tensor | None
) -> Tensor:
    """`nodes + l ∘ Y labels + add`."""
    if labels is not None:
        shown = graph.to_nodes.shown
        message = label_gather(graph.to_nodes, labels).to(nodes.dtype)
        scale = None if scale is None else scale.index_select(0, shown)
        nodes = nodes.index_add(0, shown, scale_rows(message, scale))
    return nodes if add is None else nodes + add.to(nodes.dtype)


def label_gather(edges: LabelEdges, labels: Tensor) -> Tensor:
    """The rows of `Y labels` that are not zero."""
    return labels.index_select(0, edges.y)
