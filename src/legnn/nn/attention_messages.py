"""Heterogeneous message passing with attention in place of a fixed normalization of `A'`."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import targets_of
from legnn.nn.message_passing import add_relations
from legnn.nn.normalization import LabelScales, Normalization
from legnn.ops.attention import attend
from legnn.ops.propagate import label_gather
from legnn.ops.rows import scale_rows, split_scores
from legnn.ops.types import AttentionConfig, AttentionOutput


class LabelAttention(NamedTuple):
    """Messages of the labels, and their attention scores."""

    values: Tensor
    """`H_L W_L` `[C, D]`."""
    source: Tensor | None
    """`[C, heads]` scores of the labels as sources; None where no softmax compares them."""
    target: Tensor | None
    """`[C, heads]` scores of the labels as targets."""


def pass_attention_messages(
    graph: LabelGraph,
    values_and_scores: Tensor,
    labels: LabelAttention | None,
    residual: Tensor | None,
    normalization: Normalization,
    config: AttentionConfig,
    *,
    update_labels: bool,
) -> tuple[Tensor, Tensor | None]:
    """`Â`, `Ŷ` and `Ŝ` by attention: one softmax within each relation, or one over all edges of `A'` (joint).

    Shapes: `values_and_scores` as in `ops.attend`, `residual` `[M, out]` or longer or None; returns `[M, out]`,
    `[C, out]`.
    """
    scales, label_scales = normalization.scales(graph, values_and_scores, enhanced=labels is not None)
    residual = None if residual is None else targets_of(residual, graph)
    if labels is None:
        output = attend(graph, values_and_scores, None, None, residual, scales, config, update_labels=False)
        return output.nodes, None
    if scales.score is not None and labels.source is not None:
        labels = labels._replace(source=scale_rows(labels.source, label_scales.to_labels))
    message, joint = scale_rows(labels.values, label_scales.to_nodes), normalization.kind == "joint"
    if joint:
        # the label edge joins the softmax of the neighbors before anything is scaled or added
        unscaled = scales._replace(target=None, from_label=None)
        output = attend(
            graph, values_and_scores, None, labels.target, None, unscaled, config, update_labels=update_labels
        )
        nodes = scale_rows(_join_label_edges(graph, output, values_and_scores, message, labels, config), scales.target)
        nodes = nodes if residual is None else nodes + residual
    else:
        output = attend(
            graph, values_and_scores, message, labels.target, residual, scales, config, update_labels=update_labels
        )
        nodes = output.nodes
    if output.labels is None:
        return nodes, None
    if graph.label_adjacency is None:
        return nodes, add_relations(output.labels, None, label_scales)
    from_labels, log_denominator = _attend_labels(graph.label_adjacency, labels, label_scales, config)
    if joint:
        merged = _merge_softmaxes(graph, output, from_labels, log_denominator)
        return nodes, add_relations(merged, None, label_scales)
    return nodes, add_relations(output.labels, from_labels.flatten(1), label_scales)


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
    change = share * (label_gather(graph.to_nodes, message) - nodes.index_select(0, shown))
    return nodes.index_add(0, shown, change)


def _attend_labels(
    adjacency: Tensor, labels: LabelAttention, scales: LabelScales, config: AttentionConfig
) -> tuple[Tensor, Tensor]:
    """Attention along the few label–label edges `[C, C]`: `[C, heads, D / heads]`, log-denominator `[C, heads]`."""
    if labels.source is None:
        raise InputError("graph has label–label edges; make the layer with label_edges=True")
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
