"""Sums over neighbors and over the nodes of a class: the product with `A' = [[A, Y], [Yᵀ, 0]]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from legnn.ops.autograd import run
from legnn.ops.propagate.autograd import AddLabels, ClassSum, LabelGather, ProjectEntries, PropagateMessages
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
    add_to_labels: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The product with `A'`, scaled: `nodes = t ∘ A (s ∘ x) + l ∘ Y labels + add`, `sums = Yᵀ (c ∘ x) + add_to_labels`.

    `s`, `t`, `l` and `c` are `scales.source`, `.target`, `.from_label` and `.to_label`.

    Shapes: `x` `[N, D]`, `labels` `[C, D]` or None, `add` `[M, D]` or None, `add_to_labels` `[C, D]` or narrower or
    None; returns `[M, D]` and, with `update_labels`, `[C, D]`.
    """
    nodes, sums = run(PropagateMessages(graph, scales, update_labels), x, labels, add, add_to_labels)
    return nodes, sums


def class_sum(edges: LabelEdges, x: Tensor) -> Tensor:
    """`Yᵀ x`: the sum of `x` `[N, D]` over the nodes that show each class, `[C, D]`."""
    (sums,) = run(ClassSum(edges), x)
    return sums


def label_gather(edges: LabelEdges, labels: Tensor) -> Tensor:
    """The rows of `labels` `[C, D]` that the nodes `edges.shown` show, `[S, D]`."""
    (rows,) = run(LabelGather(edges), labels)
    return rows


def add_labels_(edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """`x + Y labels` for `x` `[M, D]`, which may be changed in place, and `labels` `[C, D]` or narrower."""
    (out,) = run(AddLabels(edges), x, labels)
    return out


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`X P` `[M, D]` for the entries of `X` `[M, F]` in CSR, with `values` `[entries]`; `weight` is `Pᵀ` `[D, F]`."""
    (product,) = run(ProjectEntries(rows, values), weight)
    return product
