"""Sums over neighbors and classes with their gradients written out, over the kernels of one device.

A kernel does in one pass over the rows what plain PyTorch does in many, and stores no tensor of features per edge. A
gradient moves along the transpose of `A'`, which is a label graph too: the same kernels compute it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from legnn.ops.runtime.streams import run_beside
from legnn.ops.select import Kernels
from legnn.ops.types import LabelGraphLike, RowTerms, Scales

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency
    from legnn.ops.csr.label_edges import LabelEdges


class PropagateMessages(torch.autograd.Function):
    """`reference.propagate_messages`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, labels: Tensor | None, add: Tensor | None, add_to_labels: Tensor | None,
        graph: LabelGraphLike, scales: Scales, update_labels: bool, kernels: Kernels,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Returns nodes `[M, D]` and, with `update_labels`, the sums of the classes `[C, D]`."""
        ctx.rest = graph, scales, update_labels, kernels
        ctx.labels_shape = None if labels is None else labels.shape
        sum_rows = kernels.propagate.sum_rows
        terms = node_terms(graph, labels, add, scales)
        if not update_labels:
            return sum_rows(graph.adjacency, x, terms), None
        ctx.added_columns = None if add_to_labels is None else add_to_labels.size(1)
        if graph.to_labels.is_empty:
            sums = x.new_zeros(graph.to_labels.num_classes, x.size(1))
            if add_to_labels is not None:
                sums[:, : add_to_labels.size(1)] += add_to_labels
            return sum_rows(graph.adjacency, x, terms), sums
        # the order of the classes is made beside the large sum, too, if it is a new one: nothing has to wait for it
        return run_beside(
            x,
            lambda: sum_rows(graph.adjacency, x, terms),
            lambda: sum_rows(graph.to_labels.classes, x, RowTerms(scales.to_label, add=add_to_labels)),
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `x`, `labels`, `add` and `add_to_labels`."""
        graph, scales, update_labels, kernels = ctx.rest
        _, labels, add, add_to_labels = ctx.needs_input_grad[:4]
        nodes = gradients[0].contiguous()
        terms = RowTerms(scales.target, scales.source)
        if update_labels and not graph.to_labels.is_empty:
            terms = terms._replace(
                label_of=graph.to_labels.label_of, label_rows=gradients[1].contiguous(), label_scale=scales.to_label
            )
        transpose = graph.adjacency.transpose
        if not labels:
            d_x, d_labels = kernels.propagate.sum_rows(transpose, nodes, terms), None
        else:
            d_x, d_labels = run_beside(
                nodes,
                lambda: kernels.propagate.sum_rows(transpose, nodes, terms),
                lambda: label_gradient(kernels, graph, nodes, scales, ctx.labels_shape),
            )
        d_added = gradients[1][:, : ctx.added_columns] if add_to_labels and update_labels else None
        return d_x, d_labels, nodes if add else None, d_added, None, None, None, None


def node_terms(graph: LabelGraphLike, labels: Tensor | None, add: Tensor | None, scales: Scales) -> RowTerms:
    """The terms of the nodes: their scales, `add`, and `l ∘ Y labels` if any node shows a label."""
    terms = RowTerms(scales.source, scales.target, add=add)
    if labels is None or graph.to_nodes.is_empty:
        return terms
    return terms._replace(label_of=graph.to_nodes.label_of, label_rows=labels, label_scale=scales.from_label)


def label_gradient(
    kernels: Kernels, graph: LabelGraphLike, gradient: Tensor, scales: Scales, shape: tuple[int, ...]
) -> Tensor:
    """The gradient `Yᵀ (l ∘ gradient)` of the labels, of `shape`, for `gradient` `[M, D]`."""
    if graph.to_nodes.is_empty:
        return gradient.new_zeros(shape)
    return kernels.propagate.sum_rows(graph.to_nodes.classes, gradient, RowTerms(scales.from_label))[:, : shape[1]]


def contiguous(x: Tensor | None) -> Tensor | None:
    """`x.contiguous()`, or None."""
    return None if x is None else x.contiguous()


class LabelGather(torch.autograd.Function):
    """`reference.label_gather`; PyTorch's own gradient would add the rows of a class in no fixed order."""

    @staticmethod
    def forward(ctx: Any, labels: Tensor, edges: LabelEdges, kernels: Kernels) -> Tensor:
        """Returns `[S, D]`."""
        ctx.rest = edges, kernels
        return labels.index_select(0, edges.y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Returns the gradient of `labels`."""
        edges, kernels = ctx.rest
        if edges.is_empty:
            return gradients[0].new_zeros(edges.num_classes, gradients[0].size(1)), None, None
        nodes = gradients[0].new_zeros(edges.num_nodes, gradients[0].size(1)).index_copy_(0, edges.shown, gradients[0])
        return kernels.propagate.sum_rows(edges.classes, nodes), None, None


class LabelMessages(torch.autograd.Function):
    """`Y labels` without a value, for the gradient alone."""

    @staticmethod
    def forward(ctx: Any, labels: Tensor, edges: LabelEdges, columns: int, kernels: Kernels) -> Tensor:
        """Returns one number, not written, that stands for all of `[n, columns]`."""
        ctx.rest = edges, labels.size(1), kernels
        return labels.new_empty(()).expand(edges.num_nodes, columns)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Returns the gradient of `labels`."""
        edges, columns, kernels = ctx.rest
        return kernels.propagate.sum_rows(edges.classes, gradients[0].contiguous())[:, :columns], None, None, None


class AddLabels(torch.autograd.Function):
    """`reference.add_labels_`, the gradient of the labels by way of `messages`, which stands for `Y labels`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, messages: Tensor | None, labels: Tensor, edges: LabelEdges, kernels: Kernels
    ) -> Tensor:
        """Returns `x`, changed in place."""
        ctx.mark_dirty(x)
        kernels.propagate.add_label_rows(x, edges.shown, edges.y, labels)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `x` and `messages`."""
        return gradients[0], gradients[0], None, None, None


class ProjectEntries(torch.autograd.Function):
    """`reference.project_entries`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Adjacency, values: Tensor, kernels: Kernels) -> Tensor:
        """Returns `[M, D]`."""
        ctx.rest = rows, values, kernels
        return kernels.propagate.sum_rows(rows.with_weight(values), weight.T.contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Returns the gradient of `weight`."""
        rows, values, kernels = ctx.rest
        transposed = rows.transpose.with_weight(values.index_select(0, rows.inv_perm))
        return kernels.propagate.sum_rows(transposed, gradients[0].contiguous()).T, None, None, None
