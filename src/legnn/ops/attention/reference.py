"""Attention in plain PyTorch, as the equations say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.ops.propagate.reference import add_label_messages
from legnn.ops.rows import scale_rows, split_scores
from legnn.ops.types import AttentionConfig, AttentionOutput, LabelGraphLike, Scales

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency


def attend(
    graph: LabelGraphLike, values_and_scores: Tensor, labels: Tensor | None, label_target: Tensor | None,
    add: Tensor | None, scales: Scales, config: AttentionConfig, *, update_labels: bool,
) -> AttentionOutput:  # fmt: skip
    """`nodes_i = t_i Σ_j α_ij s_j values_j + l_i labels_{y_i} + add_i`, and the same for labels."""
    values = values_and_scores[:, : config.channels].unflatten(1, (config.heads, -1))
    source, target = split_scores(values_and_scores, config)
    source, label_source = scale_scores(source, scales)
    slope = config.negative_slope
    nodes, log_denominator = neighbor_attention(
        graph.adjacency, scale_rows(values, scales.source), source, target, slope
    )
    nodes = scale_rows(nodes, scales.target).flatten(1)
    nodes = add_label_messages(graph, nodes, labels, add, scales.from_label)
    if not update_labels:
        return AttentionOutput(nodes, log_denominator, None, None)
    new_labels, label_log_denominator = neighbor_attention(
        graph.to_labels.classes, scale_rows(values, scales.to_label), label_source, label_target, slope
    )
    return AttentionOutput(nodes, log_denominator, new_labels.flatten(1), label_log_denominator)


def scale_scores(source: Tensor, scales: Scales) -> tuple[Tensor, Tensor]:
    """The scores `[N, heads]` of the nodes as sources for their neighbors, and for their labels."""
    scaled = scale_rows(source, scales.score)
    return scaled, scaled if scales.scales_label_scores else source


def neighbor_attention(
    adjacency: Adjacency, values: Tensor, source: Tensor, target: Tensor | None, negative_slope: float
) -> tuple[Tensor, Tensor]:
    """`Σ_j α_ij values_j` over the edges of each row, and the logarithm of the softmax's denominator.

    Shapes: `values` `[cols, heads, D]`, `source` `[cols, heads]`, `target` `[rows, heads]` or None; returns
    `[rows, heads, D]` and `[rows, heads]`, zero and `-inf` for a row without edges.
    """
    score = source.index_select(0, adjacency.col)
    if target is not None:
        score = score + target.index_select(0, adjacency.row)
    score = F.leaky_relu(score, negative_slope)  # eq. 15: attention scores
    if adjacency.weight is not None:
        score = score + adjacency.weight.to(score.dtype).log()[:, None]
    share, log_denominator = _segment_softmax(score, adjacency.row, adjacency.num_rows)
    out = values.new_zeros(adjacency.num_rows, *values.shape[1:])
    messages = share[..., None] * values.index_select(0, adjacency.col)
    return out.index_add(0, adjacency.row, messages), log_denominator


def _segment_softmax(score: Tensor, segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """Softmax of `score` `[E, heads]` within each segment, and its log-denominator `[segments, heads]`."""
    # the largest score is subtracted for range only: it is a constant to the gradient
    with torch.no_grad():
        largest = score.new_full((num_segments, score.size(1)), -torch.inf)
        largest = largest.scatter_reduce(0, segment.long()[:, None].expand_as(score), score, "amax")
    exponent = (score - largest.index_select(0, segment)).exp()
    denominator = score.new_zeros(num_segments, score.size(1)).index_add(0, segment, exponent)
    # eq. 16: softmax over the neighbors
    return exponent / denominator.index_select(0, segment), denominator.log() + largest
