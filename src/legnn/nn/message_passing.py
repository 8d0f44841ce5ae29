"""Heterogeneous message passing: `H_N' = Â H_N W_N + Ŷ H_L W_L`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L`.

The hats are a `Normalization` (GCN, GraphSAGE) or attention (GAT). A residual or self-connection is passed as `add`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.nn.layer import add_bias, targets_of
from legnn.nn.normalization import LabelScales, Normalization
from legnn.nn.products import product
from legnn.ops import AttentionConfig, AttentionOutput, Scales, attend, label_gather, propagate_messages
from legnn.ops.product import run_labels_beside
from legnn.ops.rows import scale_rows, split_scores
from legnn.ops.runtime.padding import pad_columns

T = TypeVar("T")

SUM_FIRST = 2
"""Times as many source as target nodes from which summing first is worth the passes it adds."""


def aggregate_at_labels(from_nodes: Tensor, from_labels: Tensor | None, scales: LabelScales) -> Tensor:
    """`H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L` `[C, D]` from what nodes and labels send, not yet scaled at the target."""
    new_labels = scale_rows(from_nodes, scales.from_nodes)
    return new_labels if from_labels is None else new_labels + scale_rows(from_labels, scales.from_labels)


def send_beside(
    graph: LabelGraph,
    labels: Tensor | None,
    normalization: Normalization,
    send_nodes: Callable[[], Tensor],
    send_labels: Callable[[], T],
) -> tuple[Tensor, T]:
    """What nodes and what `labels` `[C, in]` send: large products, and beside them small ones and the labels' edges."""

    def small() -> T:
        sent = send_labels()
        if labels is not None:
            # on its way to what the messages read of the graph, which is built here if it is a new one
            normalization.scales(graph, labels, enhanced=True)
        return sent

    return run_labels_beside(labels, send_nodes, small)


def pass_messages(
    graph: LabelGraph,
    x: Tensor,
    labels: Tensor | None,
    add: Tensor | None,
    normalization: Normalization,
    *,
    update_labels: bool,
    add_to_labels: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`Â x + Ŷ labels + add` and, if labels are updated, `Ŷᵀ x + Ŝ labels + add_to_labels`.

    Shapes: `x` `[N, D]`, `labels` `[C, D]` or None for messages along `A` alone, `add` `[M, D]` or longer or None,
    `add_to_labels` `[C, D]`, or narrower, or None; returns `[M, D]`, `[C, D]`.
    """
    scales, label_scales = normalization.scales(graph, x, enhanced=labels is not None)
    message = None if labels is None else scale_rows(labels, label_scales.to_nodes)
    update_labels = update_labels and labels is not None
    add = None if add is None else targets_of(add, graph)
    # added in the sum itself, where nothing comes between
    is_sum = graph.label_adjacency is None and label_scales.from_nodes is None
    nodes, sums = propagate_messages(
        graph, x, message, add, scales, update_labels=update_labels, add_to_labels=add_to_labels if is_sum else None
    )
    return nodes, _new_labels(graph, sums, labels, label_scales, None if is_sum else add_to_labels)


def pass_linear_messages(
    graph: LabelGraph,
    x: Tensor,
    weight: Tensor,
    from_labels: tuple[Tensor, Tensor] | None,
    add: Tensor | None,
    normalization: Normalization,
    *,
    update_labels: bool,
    add_to_labels: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`Â x Wᵀ + Ŷ H_L Vᵀ + add` and, if labels are updated, `Ŷᵀ x Wᵀ + Ŝ H_L Vᵀ + add_to_labels`.

    Shapes: `x` `[N, in]`, `weight` `[out, in]`, `from_labels` `H_L` `[C, in]` and `V` `[out, in]`, or None for messages
    along `A` alone, `add` `[M, out]` or longer or None, `add_to_labels` `[C, out]` or longer, a row `[out]`, or None;
    returns `[M, out]`, `[C, out]`, both with padding columns.
    """
    labels = None if from_labels is None else from_labels[0]

    def send_labels() -> tuple[Tensor | None, Tensor | None]:
        if from_labels is None:
            return None, None
        # here, so that the gradient of a row is computed beside large products, too
        rows = None if add_to_labels is None else add_to_labels.expand(from_labels[0].size(0), -1)
        return product(*from_labels), rows

    if x.size(0) < SUM_FIRST * graph.num_nodes:
        # in a whole graph the product comes first, and everything else is one pass
        values, (label_values, added) = send_beside(
            graph, labels, normalization, lambda: product(x, weight), send_labels
        )
        nodes, new_labels = pass_messages(
            graph, values, label_values, add, normalization, update_labels=update_labels, add_to_labels=added
        )
    else:
        # in a sample many more nodes send than receive: `(A x) Wᵀ` has a product for target nodes only
        label_values, added = send_labels()
        scales, label_scales = normalization.scales(graph, x, enhanced=label_values is not None)
        update_labels = update_labels and label_values is not None
        nodes, sums = propagate_messages(graph, x, None, None, scales, update_labels=update_labels)
        nodes = product(nodes, weight, None if add is None else targets_of(add, graph))
        if label_values is not None:
            nodes = add_label_messages(graph, nodes, scale_rows(label_values, label_scales.to_nodes), scales)
        sums = None if sums is None else product(sums, weight)
        new_labels = _new_labels(graph, sums, label_values, label_scales, added)
    return nodes, new_labels


def add_label_messages(graph: LabelGraph, nodes: Tensor, message: Tensor, scales: Scales) -> Tensor:
    """`nodes + Ŷ message`, `[M, out]` from `nodes` `[M, out]` and `message` `[C, out]`."""
    factors = None if scales.from_label is None else scales.from_label.index_select(0, graph.shown)
    rows = scale_rows(label_gather(graph.to_nodes, message), factors)
    return nodes.index_add(0, graph.shown, pad_columns(rows, nodes.size(1)))


def _new_labels(
    graph: LabelGraph, sums: Tensor | None, values: Tensor | None, scales: LabelScales, add: Tensor | None
) -> Tensor | None:
    """`H_L'` from the sums of the classes, what labels send and `add`, `[C, D]` each; None without the first two."""
    if sums is None or values is None:
        return None
    from_labels = None
    if graph.label_adjacency is not None:
        from_labels = graph.label_adjacency.to(values.dtype) @ scale_rows(values, scales.to_labels)
    new_labels = aggregate_at_labels(sums, from_labels, scales)
    return new_labels if add is None else new_labels + pad_columns(add, new_labels.size(1)).to(new_labels.dtype)


class LabelAttention(NamedTuple):
    """What labels send, and their attention scores."""

    values: Tensor
    """`H_L W_L` `[C, D]`."""
    source: Tensor | None
    """`[C, heads]` scores of the labels as sources; None where no softmax compares them."""
    target: Tensor | None
    """`[C, heads]` scores of the labels as targets."""
    bias: Tensor | None = None
    """`b_L` `[C, D]`, which is added to the new labels."""


def pass_attention_messages(
    graph: LabelGraph,
    values_and_scores: Tensor,
    labels: LabelAttention | None,
    add: Tensor | None,
    normalization: Normalization,
    config: AttentionConfig,
    *,
    update_labels: bool,
) -> tuple[Tensor, Tensor | None]:
    """`Â`, `Ŷ` and `Ŝ` by attention: one softmax within each relation, or one over all edges of `A'` (joint).

    Shapes: `values_and_scores` as in `ops.attend`, `add` `[M, out]` or longer or None; returns `[M, out]`, `[C, out]`,
    both with padding columns.
    """
    scales, label_scales = normalization.scales(graph, values_and_scores, enhanced=labels is not None)
    add = None if add is None else targets_of(add, graph)
    if labels is None:
        output = attend(graph, values_and_scores, None, None, add, scales, config, update_labels=False)
        return output.nodes, None
    joint = normalization.kind == "joint"
    if normalization.scaled_scores and labels.source is not None:
        labels = labels._replace(source=scale_rows(labels.source, label_scales.to_labels))
    message = scale_rows(labels.values, label_scales.to_nodes)
    # added in the sum itself, where nothing comes between
    is_sum = graph.label_adjacency is None and label_scales.from_nodes is None
    bias_in_sum = labels.bias if is_sum else None
    if joint:
        # the label edge joins the softmax of the neighbors before anything is scaled or added
        unscaled = scales._replace(target=None, from_label=None)
        output = attend(
            graph, values_and_scores, None, labels.target, None, unscaled, config, update_labels=update_labels,
            add_to_labels=bias_in_sum,
        )  # fmt: skip
        nodes = scale_rows(_join_label_edges(graph, output, values_and_scores, message, labels, config), scales.target)
        nodes = nodes if add is None else nodes + add
    else:
        output = attend(
            graph, values_and_scores, message, labels.target, add, scales, config, update_labels=update_labels,
            add_to_labels=bias_in_sum,
        )  # fmt: skip
        nodes = output.nodes
    if output.labels is None:
        return nodes, None
    new_labels = _attended_labels(graph, output, labels, label_scales, config, joint=joint)
    return nodes, new_labels if is_sum else add_bias(new_labels, labels.bias)


def _attended_labels(
    graph: LabelGraph,
    output: AttentionOutput,
    labels: LabelAttention,
    scales: LabelScales,
    config: AttentionConfig,
    *,
    joint: bool,
) -> Tensor:
    """`H_L'` `[C, D]` from attention over the nodes of each class, `output`, and along label–label edges."""
    assert output.labels is not None
    if graph.label_adjacency is None:
        return aggregate_at_labels(output.labels, None, scales)
    from_labels, log_denominator = _attend_labels(graph.label_adjacency, labels, scales, config)
    output = output._replace(labels=output.labels[:, : config.channels])
    if joint:
        return aggregate_at_labels(_merge_softmaxes(graph, output, from_labels, log_denominator), None, scales)
    assert output.labels is not None
    return aggregate_at_labels(output.labels, from_labels.flatten(1), scales)


def _join_label_edges(
    graph: LabelGraph,
    output: AttentionOutput,
    values_and_scores: Tensor,
    message: Tensor,
    labels: LabelAttention,
    config: AttentionConfig,
) -> Tensor:
    """The nodes after the label edge has joined the softmax of those that show one, by its log-denominator."""
    assert labels.source is not None
    nodes, shown = output.nodes, graph.shown
    score = label_gather(graph.to_nodes, labels.source)
    target = split_scores(values_and_scores, config)[1]
    if target is not None:
        score = score + target.index_select(0, shown)
    score = F.leaky_relu(score, config.negative_slope)
    log_denominator = _scale_by_multiplicity(output.log_denominator, graph.multiplicity)
    log_denominator = log_denominator.index_select(0, shown).to(score.dtype)
    share = torch.sigmoid(score - log_denominator).repeat_interleave(config.channels // config.heads, 1)
    change = share * (label_gather(graph.to_nodes, message) - nodes.index_select(0, shown)[:, : config.channels])
    return nodes.index_add(0, shown, pad_columns(change, nodes.size(1)))


def _attend_labels(
    adjacency: Tensor, labels: LabelAttention, scales: LabelScales, config: AttentionConfig
) -> tuple[Tensor, Tensor]:
    """Attention along the few label–label edges `[C, C]`: `[C, heads, D / heads]`, log-denominator `[C, heads]`."""
    if labels.source is None:
        raise ValueError("the graph has label–label edges; make the layer with label_edges=True")
    values = scale_rows(labels.values, scales.to_labels).unflatten(1, (config.heads, -1))
    adjacency = adjacency.to(values.dtype)
    score = labels.source[None] if labels.target is None else labels.source[None] + labels.target[:, None]
    score = F.leaky_relu(score, config.negative_slope).expand(*adjacency.shape, -1) + adjacency.log()[..., None]
    # a label without label–label edges has only -inf scores; its attention is zero, not NaN
    connected = (adjacency.sum(1) > 0)[:, None, None]
    score = score.masked_fill(~connected, 0.0)
    log_denominator = torch.logsumexp(score, 1).masked_fill(~connected[:, 0], -torch.inf)
    return torch.einsum("cdh,dhf->chf", torch.softmax(score, 1) * connected, values), log_denominator


def _merge_softmaxes(
    graph: LabelGraph, output: AttentionOutput, from_labels: Tensor, log_denominator: Tensor
) -> Tensor:
    """One softmax of a label over its nodes and its label–label edges, from those over each of them, `[C, D]`."""
    assert output.labels is not None
    assert output.label_log_denominator is not None
    from_nodes = output.labels.unflatten(1, from_labels.shape[1:])
    node_log = _scale_by_multiplicity(output.label_log_denominator, graph.label_multiplicity)
    both = torch.stack([node_log.to(log_denominator.dtype), log_denominator])
    share = torch.softmax(both.masked_fill(both.isneginf().all(0), 0.0), 0)[..., None]
    return (share[0] * from_nodes + share[1] * from_labels).flatten(1)


def _scale_by_multiplicity(log_denominator: Tensor, multiplicity: Tensor | None) -> Tensor:
    """The logarithm of a sum `[n, heads]` in which each sampled edge counts for `multiplicity` `[n]` edges."""
    return log_denominator if multiplicity is None else log_denominator + multiplicity.log()[:, None]
