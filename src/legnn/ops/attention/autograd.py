"""Attention with its gradient written out, over the kernels of one device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.ops.attention.reference import scale_scores, split_scores
from legnn.ops.propagate.autograd import label_gradient, node_terms
from legnn.ops.select import Kernels
from legnn.ops.types import AttentionConfig, AttentionInputs, LabelGraphLike, RowTerms, Scales


class Attend(torch.autograd.Function):
    """`reference.attend`."""

    @staticmethod
    def forward(
        ctx: Any, values_and_scores: Tensor, labels: Tensor | None, label_target: Tensor | None, add: Tensor | None,
        graph: LabelGraphLike, scales: Scales, config: AttentionConfig, update_labels: bool, kernels: Kernels,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """Returns the fields of `AttentionOutput`."""
        # every edge reads the scores: in a matrix of their own they are small enough to stay in the cache
        source, target = (_single(score) for score in split_scores(values_and_scores, config))
        assert source is not None
        source, label_source = scale_scores(source, scales)
        ops, slope = kernels.attention, config.negative_slope
        log = ops.log_denominator(graph.adjacency, source, target, slope)
        attention = AttentionInputs(values_and_scores, config, source, target, log)
        nodes = ops.attention_sum(graph.adjacency, attention, node_terms(graph, labels, add, scales))
        new_labels = label_log = None
        ctx.labels_attend = update_labels and not graph.to_labels.is_empty
        if ctx.labels_attend:
            classes = graph.to_labels.classes
            label_target = _single(label_target)
            label_log = ops.log_denominator(classes, label_source, label_target, slope)
            attention = attention._replace(source=label_source, target=label_target, log_denominator=label_log)
            new_labels = ops.attention_sum(classes, attention, RowTerms(scales.to_label))
        elif update_labels:
            new_labels = nodes.new_zeros(graph.to_labels.num_classes, nodes.size(1))
            label_log = log.new_full((graph.to_labels.num_classes, config.heads), -torch.inf)
        ctx.save_for_backward(
            values_and_scores,
            source,
            target,
            label_source,
            labels,
            label_target,
            add,
            nodes,
            log,
            new_labels,
            label_log,
        )
        ctx.rest = graph, scales, config, kernels
        return nodes, log, new_labels, label_log

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `values_and_scores`, `labels`, `label_target` and `add`."""
        (
            values_and_scores,
            source,
            target,
            label_source,
            labels,
            label_target,
            add,
            nodes,
            log,
            new_labels,
            label_log,
        ) = ctx.saved_tensors
        graph, scales, config, kernels = ctx.rest
        channels, heads = config.channels, config.heads
        ops, sum_edges = kernels.attention, kernels.propagate.sum_edges
        gradient = gradients[0].contiguous()
        terms = node_terms(graph, labels, add, scales)
        d_values_and_scores = torch.empty_like(values_and_scores)
        d_values_and_scores[:, channels + heads :] = 0
        # Σ_k α_ik (t_i s_k gradient_i · values_k), which softmax subtracts from the gradient of every score
        dot = ops.attention_dot(gradient, nodes, channels, heads, terms) - gradients[1]
        attention = AttentionInputs(values_and_scores, config, source, target, log)
        transposition = graph.adjacency.transposition
        edges = ops.attention_gradient(
            transposition.adjacency, attention, gradient, dot, terms, d_values_and_scores, add=False
        )
        d_source = d_values_and_scores[:, channels : channels + heads]
        if scales.score is not None and not scales.scales_label_scores:
            # the gradient by way of the labels is added below, unscaled
            d_source.mul_(scales.score[:, None])
        if edges is not None:
            d_target = sum_edges(graph.adjacency, edges, transposition.place)
            # in a sampled block the target nodes are the first of the source nodes
            d_values_and_scores[: d_target.size(0), channels + heads : channels + 2 * heads] = d_target
        d_label_target = None
        if ctx.labels_attend:
            terms, d_new_labels = RowTerms(scales.to_label), gradients[2].contiguous()
            dot = ops.attention_dot(d_new_labels, new_labels, channels, heads, terms) - gradients[3]
            attention = attention._replace(source=label_source, target=label_target, log_denominator=label_log)
            transposition = graph.to_labels.classes.transposition
            edges = ops.attention_gradient(
                transposition.adjacency, attention, d_new_labels, dot, terms, d_values_and_scores, add=True
            )
            if edges is not None:
                d_label_target = sum_edges(graph.to_labels.classes, edges, transposition.place)
                d_label_target = d_label_target.to(values_and_scores.dtype)
        elif new_labels is not None and label_target is not None:
            # zeros, not None: distributed training waits for a gradient of every parameter
            d_label_target = torch.zeros_like(label_target)
        if scales.score is not None and scales.scales_label_scores:
            d_source.mul_(scales.score[:, None])
        d_labels = None if labels is None else label_gradient(kernels, graph, gradient, scales, labels.shape)
        return d_values_and_scores, d_labels, d_label_target, None if add is None else gradient, *[None] * 5


def _single(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.float().contiguous()
