"""Attention with its gradient written out, over the kernels of one device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.ops.attention.reference import scale_scores, split_scores
from legnn.ops.propagate.autograd import label_gradient, node_terms
from legnn.ops.runtime.streams import run_beside
from legnn.ops.select import Kernels
from legnn.ops.types import (
    AttentionConfig,
    AttentionGradient,
    AttentionInputs,
    LabelGraphLike,
    RowTerms,
    Scales,
)


class Attend(torch.autograd.Function):
    """`reference.attend`."""

    @staticmethod
    def forward(
        ctx: Any, values_and_scores: Tensor, labels: Tensor | None, label_target: Tensor | None, add: Tensor | None,
        add_to_labels: Tensor | None, graph: LabelGraphLike, scales: Scales, config: AttentionConfig,
        update_labels: bool, kernels: Kernels,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """Returns the fields of `AttentionOutput`."""
        # every edge reads the scores: in a matrix of their own they are small enough to stay in the cache
        source, target = _split_scores(values_and_scores, config)
        source, label_source = scale_scores(source, scales)
        ops, slope = kernels.attention, config.negative_slope
        softmax = ops.softmax(graph.adjacency, source, target, slope, scales.target)
        attention = AttentionInputs(values_and_scores, config, source, target, *softmax)
        log, share, scaled_log = softmax
        terms = node_terms(graph, labels, add, scales)
        new_labels: Tensor | None = None
        label_log: Tensor | None = None
        label_share: Tensor | None = None
        ctx.labels_attend = update_labels and not graph.to_labels.is_empty
        if ctx.labels_attend:
            label_target = _single(label_target)

            def attend_at_labels() -> tuple[Tensor, Tensor, Tensor]:
                # the order of the classes is made here, if it is a new one: nothing has to wait for it
                classes = graph.to_labels.classes
                found = ops.softmax(classes, label_source, label_target, slope, None)
                inputs = AttentionInputs(values_and_scores, config, label_source, label_target, *found)
                terms = RowTerms(scales.to_label, add=add_to_labels)
                return ops.attention_sum(classes, inputs, terms), found.log_denominator, found.share

            nodes, at_labels = run_beside(
                values_and_scores, lambda: ops.attention_sum(graph.adjacency, attention, terms), attend_at_labels
            )
            new_labels, label_log, label_share = at_labels
        else:
            nodes = ops.attention_sum(graph.adjacency, attention, terms)
        if update_labels and not ctx.labels_attend:
            new_labels = nodes.new_zeros(graph.to_labels.num_classes, nodes.size(1))
            if add_to_labels is not None:
                new_labels[:, : add_to_labels.size(1)] += add_to_labels
            label_log = log.new_full((graph.to_labels.num_classes, config.heads), -torch.inf)
        scores = source, target, label_source, label_target
        shares = (share, label_share) if ops.READS_SHARE else (None, None)
        ctx.save_for_backward(values_and_scores, *scores, log, scaled_log, label_log, *shares)
        ctx.labels_shape = None if labels is None else labels.shape
        ctx.added_columns = None if add_to_labels is None else add_to_labels.size(1)
        ctx.rest = graph, scales, config, kernels
        ctx.shapes = nodes.shape, None if new_labels is None else new_labels.shape
        # only what joins a softmax reads its log-denominator: zeros would be a launch, and to subtract them another
        ctx.set_materialize_grads(False)
        return nodes, log, new_labels, label_log

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `values_and_scores`, `labels`, `label_target`, `add` and `add_to_labels`."""
        values_and_scores, source, target, label_source, label_target, *rest = ctx.saved_tensors
        log, scaled_log, label_log, share, label_share = rest
        graph, scales, config, kernels = ctx.rest
        channels, heads = config.channels, config.heads
        ops = kernels.attention
        gradient = _dense(gradients[0], ctx.shapes[0], values_and_scores)
        d_values_and_scores = torch.empty_like(values_and_scores)
        of_nodes = AttentionGradient(
            graph.adjacency, AttentionInputs(values_and_scores, config, source, target, log, share, scaled_log),
            RowTerms(scales.source, scales.target), gradient, gradients[1],
        )  # fmt: skip
        of_labels: AttentionGradient | None = None
        if ctx.labels_attend:
            softmax = label_log, label_share, None
            inputs = AttentionInputs(values_and_scores, config, label_source, label_target, *softmax)
            of_labels = AttentionGradient(
                graph.to_labels.classes, inputs, RowTerms(scales.to_label),
                _dense(gradients[2], ctx.shapes[1], values_and_scores), gradients[3], graph.to_labels.label_of,
            )  # fmt: skip

        # that of the labels is not scaled, or all of it is, below
        score_scale = None if scales.scales_label_scores else scales.score

        def attend() -> Tensor | None:
            return ops.attention_gradient(of_nodes, of_labels, d_values_and_scores, score_scale)

        if ctx.labels_shape is None:
            d_label_target, d_labels = attend(), None
        else:
            d_label_target, d_labels = run_beside(
                gradient, attend, lambda: label_gradient(kernels, graph, gradient, scales, ctx.labels_shape)
            )
        if d_label_target is not None:
            d_label_target = d_label_target.to(values_and_scores.dtype)
        elif not ctx.labels_attend and label_log is not None and label_target is not None:
            # zeros, not None: distributed training waits for a gradient of every parameter
            d_label_target = torch.zeros_like(label_target)
        if scales.score is not None and scales.scales_label_scores:
            d_values_and_scores[:, channels : channels + heads].mul_(scales.score[:, None])
        d_add = gradient if ctx.needs_input_grad[3] else None
        d_added = None
        if gradients[2] is not None and ctx.needs_input_grad[4]:
            d_added = gradients[2][:, : ctx.added_columns]
        return d_values_and_scores, d_labels, d_label_target, d_add, d_added, *[None] * 5


def _dense(gradient: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """The gradient of a result of `shape`, zeros for None."""
    return like.new_zeros(shape) if gradient is None else gradient.contiguous()


def _split_scores(values_and_scores: Tensor, config: AttentionConfig) -> tuple[Tensor, Tensor | None]:
    """`reference.split_scores` in single precision, each a matrix of its own."""
    source, target = split_scores(values_and_scores, config)
    if target is None:
        return source.float().contiguous(), None
    both = torch.empty(2, *source.shape, dtype=torch.float32, device=source.device)
    # one pass over the columns of both
    first, heads = config.channels, config.heads
    both.copy_(values_and_scores[:, first : first + 2 * heads].unflatten(1, (2, heads)).transpose(0, 1))
    return both[0], both[1]


def _single(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.float().contiguous()
