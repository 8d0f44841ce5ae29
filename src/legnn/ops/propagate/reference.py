"""Sums over neighbors and classes in plain PyTorch, as the equations say.

Rows are taken with `index_select`, not with brackets: its gradient is one `index_add`, theirs sorts the indices first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from legnn.ops.rows import scale_rows
from legnn.ops.runtime.padding import pad_columns
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
    add_to_labels: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`nodes = t ∘ A (s ∘ x) + l ∘ Y labels + add` and `sums = Yᵀ (c ∘ x) + add_to_labels`."""
    nodes = scale_rows(neighbor_sum(graph.adjacency, scale_rows(x, scales.source)), scales.target)
    nodes = add_label_messages(graph, nodes, labels, add, scales.from_label)
    if not update_labels:
        return nodes, None
    sums = class_sum(graph.to_labels, scale_rows(x, scales.to_label))
    return nodes, sums if add_to_labels is None else sums + pad_columns(add_to_labels, sums.size(1)).to(sums.dtype)


def add_label_messages(
    graph: LabelGraphLike, nodes: Tensor, labels: Tensor | None, add: Tensor | None, scale: Tensor | None
) -> Tensor:
    """`nodes + l ∘ Y labels + add`."""
    if labels is not None:
        shown = graph.to_nodes.shown
        message = pad_columns(label_gather(graph.to_nodes, labels), nodes.size(1)).to(nodes.dtype)
        scale = None if scale is None else scale.index_select(0, shown)
        nodes = nodes.index_add(0, shown, scale_rows(message, scale))
    return nodes if add is None else nodes + add.to(nodes.dtype)


def class_sum(edges: LabelEdges, x: Tensor) -> Tensor:
    """`Yᵀ x`."""
    return neighbor_sum(edges.classes, x)


def label_gather(edges: LabelEdges, labels: Tensor) -> Tensor:
    """The rows of `Y labels` that are not zero."""
    return labels.index_select(0, edges.y)


def add_labels(edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """`x + Y labels`."""
    return x.index_add(0, edges.shown, pad_columns(label_gather(edges, labels), x.size(1)).to(x.dtype))


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`X P`, `weight` being `Pᵀ`."""
    return neighbor_sum(rows.with_weight(values), weight.T)
