"""Attention with its gradient written out, over the kernels of one device."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
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
        graph: LabelGraphLike, scales: Scales, config: AttentionConfig, update_labels: bool, kernels: Kernels,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """Returns the fields of `AttentionOutput`."""
        # every edge reads the scores: in a matrix of their own they are small enough to stay in the cache
        source, target = (_single(score) for score in split_scores(values_and_scores, config))
        assert source is not None
        source, label_source = scale_scores(source, scales)
        ops, slope = kernels.attention, config.negative_slope
        log, share = ops.softmax(graph.adjacency, source, target, slope)
        attention = AttentionInputs(values_and_scores, config, source, target, log, share)
        terms = node_terms(graph, labels, add, scales)
        new_labels: Tensor | None = None
        label_log: Tensor | None = None
        label_share: Tensor | None = None
        ctx.labels_attend = update_labels and not graph.to_labels.is_empty
        if ctx.labels_attend:
            classes = graph.to_labels.classes
            label_target = _single(label_target)

            def attend_at_labels() -> tuple[Tensor, Tensor, Tensor | None]:
                log_and_share = ops.softmax(classes, label_source, label_target, slope)
                inputs = AttentionInputs(values_and_scores, config, label_source, label_target, *log_and_share)
                return ops.attention_sum(classes, inputs, RowTerms(scales.to_label)), *log_and_share

            nodes, at_labels = run_beside(
                values_and_scores, lambda: ops.attention_sum(graph.adjacency, attention, terms), attend_at_labels
            )
            new_labels, label_log, label_share = at_labels
        else:
            nodes = ops.attention_sum(graph.adjacency, attention, terms)
        if update_labels and not ctx.labels_attend:
            new_labels = nodes.new_zeros(graph.to_labels.num_classes, nodes.size(1))
            label_log = log.new_full((graph.to_labels.num_classes, config.heads), -torch.inf)
        output = (labels, add, nodes, new_labels) if ops.READS_OUTPUT else (None,) * 4
        scores = source, target, label_source, label_target
        ctx.save_for_backward(values_and_scores, *scores, log, label_log, share, label_share, *output)
        ctx.labels_shape = None if labels is None else labels.shape
        ctx.rest = graph, scales, config, kernels
        ctx.shapes = nodes.shape, None if new_labels is None else new_labels.shape
        # only what joins a softmax reads its log-denominator: zeros would be a launch, and to subtract them another
        ctx.set_materialize_grads(False)
        return nodes, log, new_labels, label_log

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `values_and_scores`, `labels`, `label_target` and `add`."""
        values_and_scores, source, target, label_source, label_target, log, label_log, *rest = ctx.saved_tensors
        share, label_share, labels, add, nodes, new_labels = rest
        graph, scales, config, kernels = ctx.rest
        channels, heads = config.channels, config.heads
        ops = kernels.attention
        gradient = _dense(gradients[0], ctx.shapes[0], values_and_scores)
        d_values_and_scores = torch.empty_like(values_and_scores)
        d_source = d_values_and_scores[:, channels : channels + heads]
        of_nodes = AttentionGradient(
            graph.adjacency, AttentionInputs(values_and_scores, config, source, target, log, share),
            node_terms(graph, labels, add, scales), nodes, gradient, gradients[1],
        )  # fmt: skip
        of_labels: AttentionGradient | None = None
        if ctx.labels_attend:
            inputs = AttentionInputs(values_and_scores, config, label_source, label_target, label_log, label_share)
            of_labels = AttentionGradient(
                graph.to_labels.classes, inputs, RowTerms(scales.to_label), new_labels,
                _dense(gradients[2], ctx.shapes[1], values_and_scores), gradients[3],
            )  # fmt: skip

        def scale_scores_of_nodes() -> None:
            if scales.score is not None and not scales.scales_label_scores:
                # the gradient by way of the labels is added below, unscaled
                d_source.mul_(scales.score[:, None])

        def attend() -> tuple[Tensor | None, Tensor | None]:
            return ops.attention_gradient(of_nodes, of_labels, d_values_and_scores, scale_scores_of_nodes)

        if ctx.labels_shape is None:
            (d_target, d_label_target), d_labels = attend(), None
        else:
            (d_target, d_label_target), d_labels = run_beside(
                gradient, attend, lambda: label_gradient(kernels, graph, gradient, scales, ctx.labels_shape)
            )
        rest = d_values_and_scores[:, channels + heads :]
        if d_target is None:
            rest.zero_()
        else:
            # in a sampled block the target nodes are the first of the source nodes
            rest.copy_(F.pad(d_target, (0, rest.size(1) - heads, 0, rest.size(0) - d_target.size(0))))
        if d_label_target is not None:
            d_label_target = d_label_target.to(values_and_scores.dtype)
        elif not ctx.labels_attend and label_log is not None and label_target is not None:
            # zeros, not None: distributed training waits for a gradient of every parameter
            d_label_target = torch.zeros_like(label_target)
        if scales.score is not None and scales.scales_label_scores:
            d_source.mul_(scales.score[:, None])
        d_add = gradient if ctx.needs_input_grad[3] else None
        return d_values_and_scores, d_labels, d_label_target, d_add, *[None] * 5


def _dense(gradient: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """The gradient of a result of `shape`, zeros for None."""
    return like.new_zeros(shape) if gradient is None else gradient.contiguous()


def _single(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.float().contiguous()
