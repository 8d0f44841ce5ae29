"""Sums over neighbors and over the nodes of a class: the product with `A' = [[A, Y], [Yᵀ, 0]]`, and its gradient.

A kernel does in one pass over the rows what plain PyTorch does in many, and stores no tensor of features per edge. A
gradient moves along the transpose of `A'`, which is a label graph too: the same kernels compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from legnn.ops.autograd import Inputs, Operation, Outputs, run
from legnn.ops.propagate import reference
from legnn.ops.types import LabelGraphLike, RowTerms, Scales

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
    """`x + Y labels`, in place, for `x` `[M, D]` and `labels` `[C, D]`."""
    # deterministic on a GPU, too: no node shows two labels
    return x.index_add_(0, edges.shown, label_gather(edges, labels).to(x.dtype))


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`X P` `[M, D]` for the entries of `X` `[M, F]` in CSR, with `values` `[entries]`; `weight` is `Pᵀ` `[D, F]`."""
    (product,) = run(NeighborSum(rows.with_weight_both_ways(values)), weight.T)
    return product


@dataclass(eq=False)
class PropagateMessages(Operation):
    """A function of `x`, `labels` and `add`; see `legnn.ops.propagate_messages`."""

    graph: LabelGraphLike
    scales: Scales
    update_labels: bool
    package = "propagate"

    def forward(self, x: Tensor, labels: Tensor | None, add: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Returns nodes `[M, D]` and, with `update_labels`, the sums of the classes `[C, D]`."""
        x, classes = x.contiguous(), self.graph.to_labels
        terms = node_terms(self.graph, contiguous(labels), contiguous(add), self.scales)
        nodes = self.kernels.sum_rows(self.graph.adjacency, x, terms)
        if not self.update_labels:
            return nodes, None
        if classes.is_empty:
            return nodes, nodes.new_zeros(classes.num_classes, x.size(1))
        return nodes, self.kernels.sum_rows(classes.classes, x, RowTerms(self.scales.to_label))

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of the inputs."""
        d_nodes, d_sums = gradients
        d_nodes, classes, scales = d_nodes.contiguous(), self.graph.to_labels, self.scales
        terms = RowTerms(scales.target, scales.source)
        if self.update_labels and not classes.is_empty:
            terms = terms._replace(
                label_of=classes.label_of, label_rows=d_sums.contiguous(), label_scale=scales.to_label
            )
        d_x = self.kernels.sum_rows(self.graph.adjacency.transpose, d_nodes, terms)
        d_labels = label_gradient(self.kernels, self.graph, d_nodes, scales) if needed[1] else None
        return d_x, d_labels, d_nodes if needed[2] else None

    def reference(self, x: Tensor, labels: Tensor | None, add: Tensor | None) -> Outputs:
        """See `reference.propagate_messages`."""
        return reference.propagate_messages(self.graph, x, labels, add, self.scales, update_labels=self.update_labels)


def node_terms(graph: LabelGraphLike, labels: Tensor | None, add: Tensor | None, scales: Scales) -> RowTerms:
    """The terms of the nodes: their scales, `add`, and `l ∘ Y labels` if any node shows a label."""
    terms = RowTerms(scales.source, scales.target, add=add)
    if labels is None or graph.to_nodes.is_empty:
        return terms
    return terms._replace(label_of=graph.to_nodes.label_of, label_rows=labels, label_scale=scales.from_label)


def label_gradient(kernels: Any, graph: LabelGraphLike, gradient: Tensor, scales: Scales) -> Tensor:
    """The gradient `Yᵀ (l ∘ gradient)` of the labels `[C, D]`, for `gradient` `[M, D]`."""
    if graph.to_nodes.is_empty:
        return gradient.new_zeros(graph.to_nodes.num_classes, gradient.size(1))
    sums: Tensor = kernels.sum_rows(graph.to_nodes.classes, gradient, RowTerms(scales.from_label))
    return sums


def contiguous(x: Tensor | None) -> Tensor | None:
    """`x.contiguous()`, or None."""
    return None if x is None else x.contiguous()


@dataclass(eq=False)
class NeighborSum(Operation):
    """The product of `rows` with `x` `[cols, D]`."""

    rows: Adjacency
    package = "propagate"

    def forward(self, x: Tensor) -> Outputs:
        """Returns `[rows, D]`."""
        return (self.kernels.sum_rows(self.rows, x.contiguous()),)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradient of `x`."""
        return (self.kernels.sum_rows(self.rows.transpose, gradients[0].contiguous()),)

    def reference(self, x: Tensor) -> Outputs:
        """See `reference.neighbor_sum`."""
        return (reference.neighbor_sum(self.rows, x),)


@dataclass(eq=False)
class LabelGather(Operation):
    """Rows of `labels` `[C, D]`; PyTorch's own gradient would add the rows of a class in no fixed order."""

    edges: LabelEdges
    package = "propagate"

    def forward(self, labels: Tensor) -> Outputs:
        """Returns `[S, D]`."""
        return self.reference(labels)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradient of `labels`."""
        (gradient,), edges = gradients, self.edges
        if edges.is_empty:
            return (gradient.new_zeros(edges.num_classes, gradient.size(1)),)
        nodes = gradient.new_zeros(edges.num_nodes, gradient.size(1)).index_copy_(0, edges.shown, gradient)
        return (self.kernels.sum_rows(edges.classes, nodes),)

    def reference(self, labels: Tensor) -> Outputs:
        """See `reference.label_gather`."""
        return (reference.label_gather(self.edges, labels),)
