"""Each operation in plain PyTorch, as a reader would check it against its equation. Slow forms, always right.

Rows are taken with `index_select`, not with brackets: its gradient is one `index_add`, theirs sorts the indices first.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.graph.adjacency import Adjacency


def neighbor_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`(A x)_i = Σ_j A_ij x_j`, for `x` `[cols, D]`; gives `[rows, D]`."""
    messages = x.index_select(0, adjacency.col)
    if adjacency.weight is not None:
        messages = messages * adjacency.weight.to(x.dtype)[:, None]
    return x.new_zeros(adjacency.num_rows, x.size(1)).index_add(0, adjacency.row, messages)


def neighbor_attention(
    adjacency: Adjacency,
    values: Tensor,
    source_score: Tensor,
    target_score: Tensor | None,
    negative_slope: float,
) -> tuple[Tensor, Tensor]:
    """Attention over the edges that come in at each row, and the logarithm of its denominator.

    `β_ij = LeakyReLU(source_score_j + target_score_i)`, `α_ij = A_ij exp β_ij / Σ_k A_ik exp β_ik`. Gives
    `out_i = Σ_j α_ij values_j` `[rows, heads, D]` and `log Σ_k A_ik exp β_ik` `[rows, heads]`, with which the caller
    can merge one more edge into the softmax. A row with no edges has `out = 0` and a logarithm of `-inf`.

    Shapes: `values` `[cols, heads, D]`, `source_score` `[cols, heads]`, `target_score` `[rows, heads]` or None for
    attention that does not look at the target.
    """
    score = source_score.index_select(0, adjacency.col)
    if target_score is not None:
        score = score + target_score.index_select(0, adjacency.row)
    score = F.leaky_relu(score, negative_slope)
    if adjacency.weight is not None:
        score = score + adjacency.weight.to(score.dtype).log()[:, None]
    attention, log_denominator = _segment_softmax(score, adjacency.row, adjacency.num_rows)
    out = values.new_zeros(adjacency.num_rows, *values.shape[1:])
    return out.index_add(
        0, adjacency.row, attention[..., None] * values.index_select(0, adjacency.col)
    ), log_denominator


def project_entries(rows: Adjacency, values: Tensor, order: Tensor, weight: Tensor) -> Tensor:
    """`X P` for the entries of `X` `[M, F]` in compressed rows, with `values` `[entries]`; gives `[M, D]`.

    `order` says where the entries of `Xᵀ` stand in `X`, for the fast form's backward pass; `weight` is `Pᵀ` `[D, F]`.
    """
    entries = values[:, None] * weight.T.index_select(0, rows.col)
    return entries.new_zeros(rows.num_rows, weight.size(0)).index_add(0, rows.row, entries)


def label_gather(labels: Tensor, y: Tensor) -> Tensor:
    """`Y H_L` on the rows that have an entry: `labels` `[C, ...]` to `[S, ...]`."""
    return labels.index_select(0, y)


def class_sum(x: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """`Yᵀ H_N`: the sum of `x` `[S, ...]` within each class, `[C, ...]`."""
    return x.new_zeros(num_classes, *x.shape[1:]).index_add(0, y, x)


def class_attention(values: Tensor, score: Tensor, y: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Attention of each label over the nodes that show it, and the logarithm of its denominator.

    Shapes: `values` `[S, heads, D]`, `score` `[S, heads]`; gives `[C, heads, D]` and `[C, heads]`, zero and `-inf` for
    a class that no node shows.
    """
    attention, log_denominator = _segment_softmax(score, y, num_classes)
    return class_sum(attention[..., None] * values, y, num_classes), log_denominator


def _segment_softmax(score: Tensor, segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """Softmax of `score` `[E, heads]` within each segment, and its log-denominator `[segments, heads]`."""
    # the largest score is taken off for range only: it is a constant to the gradient
    with torch.no_grad():
        largest = score.new_full((num_segments, score.size(1)), -torch.inf)
        largest = largest.scatter_reduce(0, segment[:, None].expand_as(score), score, "amax")
    exponent = (score - largest.index_select(0, segment)).exp()
    denominator = score.new_zeros(num_segments, score.size(1)).index_add(0, segment, exponent)
    return exponent / denominator.index_select(0, segment), denominator.log() + largest
