"""Sums over neighbors and over the nodes of a class: the product with `A' = [[A, Y], [Yᵀ, 0]]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from legnn.ops import select
from legnn.ops.propagate import autograd, reference
from legnn.ops.runtime.gradients import apply_function
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
    add_to_labels: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The product with `A'`, scaled: `nodes = t ∘ A (s ∘ x) + l ∘ Y labels + add`, `sums = Yᵀ (c ∘ x) + add_to_labels`.

    `s`, `t`, `l` and `c` are `scales.source`, `.target`, `.from_label` and `.to_label`.

    Shapes: `x` `[N, D]`, `labels` `[C, D]` or None, `add` `[M, D]` or None, `add_to_labels` `[C, D]` or narrower or
    None; returns `[M, D]` and, with `update_labels`, `[C, D]`.
    """
    kernels = select.kernels_for(x)
    if kernels is None:
        return reference.propagate_messages(
            graph, x, labels, add, scales, update_labels=update_labels, add_to_labels=add_to_labels
        )
    if add_to_labels is not None and kernels is not select.TRITON:
        add_to_labels = pad_columns(add_to_labels, x.size(1)).contiguous()
    return apply_function(
        autograd.PropagateMessages,
        x.contiguous(),
        autograd.contiguous(labels),
        autograd.contiguous(add),
        add_to_labels,
        graph,
        scales,
        update_labels,
        kernels,
    )


def class_sum(edges: LabelEdges, x: Tensor) -> Tensor:
    """`Yᵀ x`: the sum of `x` `[N, D]` over the nodes that show each class, `[C, D]`, with no gradient."""
    kernels = select.kernels_for(x)
    if kernels is None:
        return reference.class_sum(edges, x)
    return kernels.propagate.sum_rows(edges.classes, x.contiguous())


def label_gather(edges: LabelEdges, labels: Tensor) -> Tensor:
    """The rows of `labels` `[C, D]` that the nodes `edges.shown` show, `[S, D]`."""
    kernels = select.kernels_for(labels)
    if kernels is None:
        return reference.label_gather(edges, labels)
    return autograd.LabelGather.apply(labels, edges, kernels)


class LabelMessages(NamedTuple):
    """`Y labels` `[M, D]`, which is not computed."""

    edges: LabelEdges
    """`Y`."""
    labels: Tensor
    """`[C, D]` or narrower."""
    product: Tensor | None
    """Stands for `Y labels` in the graph of autograd; None where the gradient is not written out, or not needed."""


def label_messages(edges: LabelEdges, labels: Tensor, columns: int) -> LabelMessages:
    """`Y labels` `[M, columns]` for `labels` `[C, columns]` or narrower.

    The gradient of the labels is computed on the stream on which this is called, beside what follows the sum.
    """
    kernels = select.kernels_for(labels)
    if kernels is None or not torch.is_grad_enabled():
        return LabelMessages(edges, labels, None)
    labels = labels.contiguous()
    product = autograd.LabelMessages.apply(labels, edges, columns, kernels)
    return LabelMessages(edges, labels.detach(), product)


def add_messages_(x: Tensor, messages: LabelMessages) -> Tensor:
    """`x + Y labels` for `x` `[M, D]`, in place."""
    edges, labels, product = messages
    kernels = select.kernels_for(x)
    if kernels is None:
        return reference.add_labels_(edges, x, labels)
    return apply_function(autograd.AddLabels, x, product, labels.contiguous(), edges, kernels)


def add_labels_(edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """`x + Y labels` for `x` `[M, D]` and `labels` `[C, D]` or narrower, in place."""
    return add_messages_(x, label_messages(edges, labels, x.size(1)))


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`X P` `[M, D]` for the entries of `X` `[M, F]` in CSR, with `values` `[entries]`; `weight` is `Pᵀ` `[D, F]`."""
    kernels = select.kernels_for(weight)
    if kernels is None:
        return reference.project_entries(rows, values, weight)
    return apply_function(autograd.ProjectEntries, weight, rows, values, kernels)
