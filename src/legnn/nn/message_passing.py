"""Heterogeneous message passing: `H_N' = Â H_N W_N + Ŷ H_L W_L`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L`.

The hats are a `Normalization` (GCN, GraphSAGE); for attention see `attention_messages`.
"""

from __future__ import annotations

from torch import Tensor

from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import linear, targets_of, unsqueeze_as
from legnn.nn.normalization import LabelScales, Normalization
from legnn.ops.propagate import class_sum, label_gather, propagate_messages
from legnn.ops.rows import scale_rows

SUM_FIRST = 2
"""Times as many source as target nodes from which summing before the product is faster."""


def pass_messages(
    graph: LabelGraph,
    x: Tensor,
    labels: Tensor | None,
    residual: Tensor | None,
    normalization: Normalization,
    *,
    update_labels: bool,
) -> tuple[Tensor, Tensor | None]:
    """`Â x + Ŷ labels + residual` and, if labels are updated, `Ŷᵀ x + Ŝ labels`.

    Shapes: `x` `[N, D]`, `labels` `[C, D]` or None for messages along `A` alone, `residual` `[M, D]` or longer or None;
    returns `[M, D]`, `[C, D]`.
    """
    scales, label_scales = normalization.scales(graph, x, enhanced=labels is not None)
    message = None if labels is None else scale_rows(labels, label_scales.to_nodes)
    residual = None if residual is None else targets_of(residual, graph)
    update_labels = update_labels and labels is not None
    nodes, sums = propagate_messages(graph, x, message, residual, scales, update_labels=update_labels)
    return nodes, update_from_sums(graph, sums, labels, label_scales)


def pass_linear_messages(
    graph: LabelGraph,
    x: Tensor,
    weight: Tensor,
    labels: Tensor | None,
    residual: Tensor | None,
    normalization: Normalization,
    *,
    update_labels: bool,
) -> tuple[Tensor, Tensor | None]:
    """`Â x Wᵀ + Ŷ labels + residual` and, if labels are updated, `Ŷᵀ x Wᵀ + Ŝ labels`.

    Shapes: `x` `[N, in]`, `weight` `[out, in]`, `labels` `[C, out]` or None for messages along `A` alone, `residual`
    `[M, out]` or longer or None; returns `[M, out]`, `[C, out]`.
    """
    if x.size(0) < SUM_FIRST * graph.num_nodes:
        return pass_messages(graph, linear(x, weight), labels, residual, normalization, update_labels=update_labels)
    # in a sample many more nodes send than receive: `(Â x) Wᵀ` has a product for target nodes only
    scales, label_scales = normalization.scales(graph, x, enhanced=labels is not None)
    update_labels = update_labels and labels is not None
    nodes, sums = propagate_messages(graph, x, None, None, scales, update_labels=update_labels)
    nodes = linear(nodes, weight)
    if residual is not None:
        nodes = nodes + targets_of(residual, graph)
    if labels is not None:
        factors = None if scales.from_label is None else scales.from_label.index_select(0, graph.shown)
        messages = label_gather(graph.to_nodes, scale_rows(labels, label_scales.to_nodes))
        nodes = nodes.index_add(0, graph.shown, scale_rows(messages, factors))
    return nodes, update_from_sums(graph, None if sums is None else linear(sums, weight), labels, label_scales)


def update_from_sums(
    graph: LabelGraph, sums: Tensor | None, labels: Tensor | None, scales: LabelScales
) -> Tensor | None:
    """`Ŷᵀ x + Ŝ labels` `[C, D]` from the sums over the nodes that show each label; None without sums."""
    if sums is None or labels is None:
        return None
    from_labels = None
    if graph.label_adjacency is not None:
        from_labels = graph.label_adjacency.to(labels.dtype) @ scale_rows(labels, scales.to_labels)
    return add_relations(sums, from_labels, scales)


def class_mean(graph: LabelGraph, x: Tensor) -> Tensor:
    """The mean of `x` `[N, D]` over the nodes that send to each label, `[C, D]`; zero where none does."""
    total = class_sum(graph.to_labels, x)
    return total / unsqueeze_as(graph.to_labels.count.clamp(min=1), total)


def add_relations(from_nodes: Tensor, from_labels: Tensor | None, scales: LabelScales) -> Tensor:
    """Sums from nodes and along label–label edges `[C, D]`, scaled and added."""
    new_labels = scale_rows(from_nodes, scales.from_nodes)
    return new_labels if from_labels is None else new_labels + scale_rows(from_labels, scales.from_labels)
