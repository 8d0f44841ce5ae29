"""Sums over neighbors and classes with their gradients written out, over the kernels of a device.

A kernel does in one pass over the rows what plain PyTorch does in many, and stores no tensor of features per edge. A
gradient moves along the transpose of `A'`, which is a label graph too: the same kernels compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from legnn.ops.autograd import Inputs, Operation, Outputs
from legnn.ops.propagate import reference
from legnn.ops.types import LabelGraphLike, RowTerms, Scales

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency
    from legnn.ops.csr.label_edges import LabelEdges


@dataclass(eq=False)
class PropagateMessages(Operation):
    """Of `x`, `labels`, `add` and `add_to_labels`; see `legnn.ops.propagate_messages`."""

    graph: LabelGraphLike
    scales: Scales
    update_labels: bool
    package = "propagate"

    def forward(
        self, x: Tensor, labels: Tensor | None, add: Tensor | None, add_to_labels: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Returns nodes `[M, D]` and, with `update_labels`, the sums of the classes `[C, D]`."""
        x, classes = x.contiguous(), self.graph.to_labels
        self.label_columns = None if labels is None else labels.size(1)
        self.added_columns = None if add_to_labels is None else add_to_labels.size(1)
        terms = node_terms(self.graph, contiguous(labels), contiguous(add), self.scales)
        nodes = self.kernels.sum_rows(self.graph.adjacency, x, terms)
        if not self.update_labels:
            return nodes, None
        if classes.is_empty:
            return nodes, no_sums(nodes, classes, add_to_labels)
        terms = RowTerms(self.scales.to_label, add=contiguous(add_to_labels))
        return nodes, self.kernels.sum_rows(classes.classes, x, terms)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of the inputs."""
        d_nodes, d_sums = gradients
        d_nodes, classes, scales = d_nodes.contiguous(), self.graph.to_labels, self.scales
        _, needs_labels, needs_add, needs_added = needed
        terms = RowTerms(scales.target, scales.source)
        if self.update_labels and not classes.is_empty:
            terms = terms._replace(
                label_of=classes.label_of, label_rows=d_sums.contiguous(), label_scale=scales.to_label
            )
        d_x = self.kernels.sum_rows(self.graph.adjacency.transpose, d_nodes, terms)
        d_labels = None
        if needs_labels:
            d_labels = label_gradient(self.kernels, self.graph, d_nodes, scales)[:, : self.label_columns]
        d_added = d_sums[:, : self.added_columns] if needs_added and self.update_labels else None
        return d_x, d_labels, d_nodes if needs_add else None, d_added

    def reference(self, x: Tensor, labels: Tensor | None, add: Tensor | None, add_to_labels: Tensor | None) -> Outputs:
        """See `reference.propagate_messages`."""
        return reference.propagate_messages(
            self.graph, x, labels, add, self.scales, update_labels=self.update_labels, add_to_labels=add_to_labels
        )


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


def no_sums(like: Tensor, edges: LabelEdges, add: Tensor | None) -> Tensor:
    """What labels that nobody shows become: `add` `[C, D]` or narrower, zeros for None."""
    sums = like.new_zeros(edges.num_classes, like.size(1))
    if add is not None:
        sums[:, : add.size(1)] += add
    return sums


def contiguous(x: Tensor | None) -> Tensor | None:
    """`x.contiguous()`, or None."""
    return None if x is None else x.contiguous()


@dataclass(eq=False)
class ClassSum(Operation):
    """Of `x` `[N, D]`; see `legnn.ops.class_sum`."""

    edges: LabelEdges
    package = "propagate"

    def forward(self, x: Tensor) -> Outputs:
        """Returns `[C, D]`."""
        return (self.kernels.sum_rows(self.edges.classes, x.contiguous()),)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradient of `x`."""
        return (self.kernels.sum_rows(self.edges.classes.transpose, gradients[0].contiguous()),)

    def reference(self, x: Tensor) -> Outputs:
        """See `reference.class_sum`."""
        return (reference.class_sum(self.edges, x),)


@dataclass(eq=False)
class LabelGather(Operation):
    """Of `labels` `[C, D]`; PyTorch's own gradient would add the rows of a class in no fixed order."""

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


@dataclass(eq=False)
class AddLabels(Operation):
    """Of `x` `[M, D]`, in place, and `labels` `[C, D]` or narrower; see `legnn.ops.add_labels_`."""

    edges: LabelEdges
    package = "propagate"
    in_place = True

    def forward(self, x: Tensor, labels: Tensor) -> Outputs:
        """Returns `x`, changed."""
        self.columns = labels.size(1)
        self.kernels.add_label_rows(x, self.edges.shown, self.edges.y, labels.contiguous())
        return (x,)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of `x` and `labels`."""
        (gradient,) = gradients
        if not needed[1]:
            return gradient, None
        return gradient, self.kernels.sum_rows(self.edges.classes, gradient.contiguous())[:, : self.columns]

    def reference(self, x: Tensor, labels: Tensor) -> Outputs:
        """See `reference.add_labels`."""
        return (reference.add_labels(self.edges, x, labels),)


@dataclass(eq=False)
class ProjectEntries(Operation):
    """Of `weight` `[D, F]`; see `legnn.ops.project_entries`."""

    rows: Adjacency
    values: Tensor
    package = "propagate"

    def forward(self, weight: Tensor) -> Outputs:
        """Returns `[M, D]`."""
        return (self.kernels.sum_rows(self.rows.with_weight(self.values), weight.T.contiguous()),)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradient of `weight`."""
        transposed = self.rows.transpose.with_weight(self.values.index_select(0, self.rows.inv_perm))
        return (self.kernels.sum_rows(transposed, gradients[0].contiguous()).T,)

    def reference(self, weight: Tensor) -> Outputs:
        """See `reference.project_entries`."""
        return (reference.project_entries(self.rows, self.values, weight),)
