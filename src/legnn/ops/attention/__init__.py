"""Attention over the neighbors of each node, and over the nodes that show each label, with its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.ops.attention import reference
from legnn.ops.autograd import Inputs, Operation, Outputs, run
from legnn.ops.backend import backend
from legnn.ops.propagate import contiguous, label_gradient, node_terms
from legnn.ops.rows import split_scores
from legnn.ops.types import (
    AttentionConfig,
    AttentionGradient,
    AttentionInputs,
    AttentionOutput,
    LabelGraphLike,
    RowTerms,
    Scales,
)


def attend(
    graph: LabelGraphLike,
    values_and_scores: Tensor,
    labels: Tensor | None,
    label_target: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    config: AttentionConfig,
    *,
    update_labels: bool,
) -> AttentionOutput:
    """Attention over a label graph, one softmax within each relation.

    `β_ij = LeakyReLU(source_j + target_i)`, `α_ij = A_ij exp β_ij / Σ_k A_ik exp β_ik`,
    `nodes_i = t_i Σ_j α_ij s_j values_j + l_i labels_{y_i} + add_i`. With `update_labels`, each label attends over the
    nodes that show it in the same way, with target scores `label_target` and `scales.to_label` in place of `s`. The
    scores of sources are multiplied by `scales.score`, for labels only with `scales.scales_label_scores`.

    Args:
        values_and_scores: `[N, W]`, the result of one product. Its columns are the values of all heads
            (`config.channels`), the scores of the nodes as sources (`config.heads`), their scores as targets (as many,
            with `config.use_target_score`), and padding.
        labels: `[C, D]` the messages of the labels, or None.
        label_target: `[C, heads]` the scores of the labels as targets, or None.
        add: `[M, D]`, or None.
    """
    operation = Attend(graph, scales, config, update_labels)
    return AttentionOutput(*run(operation, values_and_scores, labels, label_target, add))


@dataclass(eq=False)
class Attend(Operation):
    """A function of `values_and_scores`, `labels`, `label_target` and `add`; see `legnn.ops.attend`."""

    graph: LabelGraphLike
    scales: Scales
    config: AttentionConfig
    update_labels: bool
    package = "attention"
    reread = (0, 2)
    # only what joins a softmax reads its log-denominator: zeros would be a launch, and to subtract them another
    fills_gradients = False

    def forward(
        self, values_and_scores: Tensor, labels: Tensor | None, label_target: Tensor | None, add: Tensor | None
    ) -> AttentionOutput:
        """Returns nodes `[M, D]`, labels `[C, D]` and their log-denominators."""
        graph, scales, kernels = self.graph, self.scales, self.kernels
        x = values_and_scores.contiguous()
        if labels is not None and labels.stride(1) != 1:
            labels = labels.contiguous()
        # every edge reads the scores: in a matrix of their own they are small enough to stay in the cache
        source, target = _single_scores(x, self.config)
        source, label_source = reference.scale_scores(source, scales)
        slope = self.config.negative_slope
        log, share, scaled_log = softmax = kernels.softmax(graph.adjacency, source, target, slope, scales.target)
        attention = AttentionInputs(x, self.config, source, target, *softmax)
        terms = node_terms(graph, labels, contiguous(add), scales)
        nodes = kernels.attention_sum(graph.adjacency, attention, terms)
        new_labels = label_log = label_share = None
        classes = graph.to_labels
        if self._labels_attend:
            label_target = _single(label_target)
            softmax_at_labels = kernels.softmax(classes.classes, label_source, label_target, slope, None)
            label_log, label_share, _ = softmax_at_labels
            inputs = AttentionInputs(x, self.config, label_source, label_target, *softmax_at_labels)
            new_labels = kernels.attention_sum(classes.classes, inputs, RowTerms(scales.to_label))
        elif self.update_labels:
            new_labels = nodes.new_zeros(classes.num_classes, nodes.size(1))
            label_log = log.new_full((classes.num_classes, self.config.heads), -torch.inf)
        self.sums = backend("propagate", x)
        self.shapes = nodes.shape, None if new_labels is None else new_labels.shape
        shares = (share, label_share) if kernels.READS_SHARE else (None, None)
        self.saved = source, target, label_source, log, scaled_log, label_log, *shares
        return AttentionOutput(nodes, log, new_labels, label_log)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of the inputs."""
        values_and_scores, label_target = inputs
        x, scales, config = values_and_scores.contiguous(), self.scales, self.config
        source, target, label_source, log, scaled_log, label_log, share, label_share = saved
        d_nodes, d_log, d_new_labels, d_label_log = gradients
        gradient = _dense(d_nodes, self.shapes[0], x)
        nodes = AttentionGradient(
            self.graph.adjacency, AttentionInputs(x, config, source, target, log, share, scaled_log),
            RowTerms(scales.source, scales.target), gradient, d_log,
        )  # fmt: skip
        labels: AttentionGradient | None = None
        if self._labels_attend:
            classes = self.graph.to_labels
            at_labels = AttentionInputs(x, config, label_source, _single(label_target), label_log, label_share, None)
            d_sums = _dense(d_new_labels, self.shapes[1], x)
            labels = AttentionGradient(
                classes.classes, at_labels, RowTerms(scales.to_label), d_sums, d_label_log, classes.label_of
            )
        # that of the labels is not scaled, or all of it is, below
        score_scale = None if scales.scales_label_scores else scales.score
        d_x = torch.empty_like(x)
        d_label_target = self.kernels.attention_gradient(nodes, labels, d_x, score_scale)
        if label_target is not None:
            # zeros, not None: distributed training waits for a gradient of every parameter
            d_label_target = torch.zeros_like(label_target) if d_label_target is None else d_label_target.to(x.dtype)
        if scales.score is not None and scales.scales_label_scores:
            d_x[:, config.channels : config.channels + config.heads].mul_(scales.score[:, None])
        d_labels = label_gradient(self.sums, self.graph, gradient, scales) if needed[1] else None
        return d_x, d_labels, d_label_target, gradient if needed[3] else None

    def reference(
        self, values_and_scores: Tensor, labels: Tensor | None, label_target: Tensor | None, add: Tensor | None
    ) -> AttentionOutput:
        """See `reference.attend`."""
        return reference.attend(
            self.graph, values_and_scores, labels, label_target, add, self.scales, self.config,
            update_labels=self.update_labels,
        )  # fmt: skip

    @property
    def _labels_attend(self) -> bool:
        return self.update_labels and not self.graph.to_labels.is_empty


def _dense(gradient: Tensor | None, shape: torch.Size | None, like: Tensor) -> Tensor:
    """The gradient of a result of `shape`, zeros for None."""
    assert shape is not None
    return like.new_zeros(shape) if gradient is None else gradient.contiguous()


def _single_scores(values_and_scores: Tensor, config: AttentionConfig) -> tuple[Tensor, Tensor | None]:
    """`split_scores` in single precision, each a matrix of its own."""
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
