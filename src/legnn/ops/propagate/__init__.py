"""Sums over neighbors and over the nodes of a class: the product with `A' = [[A, Y], [Yᵀ, 0]]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from legnn.ops.autograd import run
from legnn.ops.propagate.autograd import LabelGather, NeighborSum, PropagateMessages
from legnn.ops.runtime.padding import pad_columns
from legnn.ops.types import LabelGraphLike, Scales

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency
    from legnn.ops.csr.label_edges import LabelEdges


def propagate_messages(
    graph: LabelGraphLike,
    x: Tensor,
    labels: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    *,
    update_labels: bool,
) -> tuple[Tensor, Tensor | None]:
    """The product with `A'`, scaled: `nodes = t ∘ A (s ∘ x) + l ∘ Y labels + add`, `sums = Yᵀ (c ∘ x)`.

    `s`, `t`, `l` and `c` are `scales.source`, `.target`, `.from_label` and `.to_label`.

    Shapes: `x` `[N, D]`, `labels` `[C, D]` or None, `add` `[M, D]` or None; returns `[M, D]` and, with
    `update_labels`, `[C, D]`.
    """
    nodes, sums = run(PropagateMessages(graph, scales, update_labels), x, labels, add)
    return nodes, sums


def class_sum(edges: LabelEdges, x: Tensor) -> Tensor:
    """`Yᵀ x`: the sum of `x` `[N, D]` over the nodes that show each class, `[C, D]`."""
    (sums,) = run(NeighborSum(edges.classes), x)
    return sums


def label_gather(edges: LabelEdges, labels: Tensor) -> Tensor:
    """The rows of `labels` `[C, D]` that the nodes `edges.shown` show, `[S, D]`."""
    (rows,) = run(LabelGather(edges), labels)
    return rows


def add_labels_(edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """`x + Y labels`, in place, for `x` `[M, D]` and `labels` `[C, D]` or narrower."""
    # deterministic on a GPU, too: no node shows two labels
    return x.index_add_(0, edges.shown, pad_columns(label_gather(edges, labels), x.size(1)).to(x.dtype))


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`X P` `[M, D]` for the entries of `X` `[M, F]` in CSR, with `values` `[entries]`; `weight` is `Pᵀ` `[D, F]`."""
    (product,) = run(NeighborSum(rows.with_weight_both_ways(values)), weight.T)
    return product
