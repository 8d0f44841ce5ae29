"""Each operation in plain PyTorch, as a reader would check it against its equation. Slow forms, always right.

Rows are taken with `index_select`, not with brackets: its gradient is one `index_add`, theirs sorts the indices first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.ops.runtime.hashing import WORD, random_words
from legnn.ops.runtime.padding import pad_columns, padded_width
from legnn.ops.types import Attended, AttentionConfig, Scales

if TYPE_CHECKING:
    from legnn.graph import Adjacency, LabelEdges, LabelGraph


Norm = nn.BatchNorm1d | nn.LayerNorm


def neighbor_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`(A x)_i = Σ_j A_ij x_j`, for `x` `[cols, D]`; gives `[rows, D]`."""
    messages = x.index_select(0, adjacency.col)
    if adjacency.weight is not None:
        messages = messages * adjacency.weight.to(x.dtype)[:, None]
    return x.new_zeros(adjacency.num_rows, x.size(1)).index_add(0, adjacency.row, messages)


def propagate(
    graph: LabelGraph, x: Tensor, labels: Tensor | None, add: Tensor | None, scales: Scales, *, classes: bool
) -> tuple[Tensor, Tensor | None]:
    """The product with `A'`, scaled: `nodes = t ∘ A (s ∘ x) + l ∘ Y labels + add` and `sums = Yᵀ (c ∘ x)`.

    Shapes: `x` `[N, D]`, `labels` `[C, D]` or None, `add` `[M, D]` or None; gives `[M, D]` and, if `classes`, `[C, D]`.
    In a whole graph `N = M`; in a part of one the `M` nodes that receive are the first of the `N` that send.
    """
    nodes = _scaled(neighbor_sum(graph.adjacency, _scaled(x, scales.source)), scales.target)
    nodes = _with_labels(graph, nodes, labels, add, scales.label)
    return nodes, class_sum(graph.to_labels, _scaled(x, scales.classes)) if classes else None


def attend(
    graph: LabelGraph,
    sent: Tensor,
    labels: Tensor | None,
    label_target: Tensor | None,
    add: Tensor | None,
    scales: Scales,
    kind: AttentionConfig,
    *,
    classes: bool,
) -> Attended:
    """Attention over a label graph, one softmax within each relation.

    `sent` `[M, W]` holds, side by side, the values of all heads (`kind.channels`), the scores of the nodes as sources
    (`kind.heads`), if attention looks at the target as targets (as many), and nothing of meaning after that: together
    they come out of one product.

    `β_ij = LeakyReLU(source_j + target_i)`, `α_ij = A_ij exp β_ij / Σ_k A_ik exp β_ik`,
    `nodes_i = t_i Σ_j α_ij s_j values_j + l_i labels_{y_i} + add_i`. If `classes`, each label attends over the nodes
    that show it in the same way, with scores `label_target` `[C, heads]` of its own and `c` for `s`.
    """
    values = sent[:, : kind.channels].unflatten(1, (kind.heads, -1))
    source, target = scores(sent, kind)
    slope = kind.negative_slope
    nodes, log_denominator = attention(graph.adjacency, _scaled(values, scales.source), source, target, slope)
    nodes = pad_columns(_scaled(nodes, scales.target).flatten(1), padded_width(kind.channels, sent))
    nodes = _with_labels(graph, nodes, labels, add, scales.label)
    if not classes:
        return Attended(nodes, log_denominator, None, None)
    new_labels, label_log_denominator = attention(
        graph.to_labels.classes, _scaled(values, scales.classes), source, label_target, slope
    )
    return Attended(nodes, log_denominator, new_labels.flatten(1), label_log_denominator)


def scores(sent: Tensor, kind: AttentionConfig) -> tuple[Tensor, Tensor | None]:
    """The scores within `sent` as sources and, if attention looks at the target, as targets, `[M, heads]` each."""
    first, second = kind.channels, kind.channels + kind.heads
    return sent[:, first:second], sent[:, second : second + kind.heads] if kind.use_target_score else None


def attention(
    adjacency: Adjacency, values: Tensor, source: Tensor, target: Tensor | None, negative_slope: float
) -> tuple[Tensor, Tensor]:
    """Attention over the edges that come in at each row, and the logarithm of its denominator.

    Shapes: `values` `[cols, heads, D]`, `source` `[cols, heads]`, `target` `[rows, heads]` or None for attention that
    does not look at the target; gives `[rows, heads, D]` and `[rows, heads]`, zero and `-inf` for a row with no edges.
    """
    score = source.index_select(0, adjacency.col)
    if target is not None:
        score = score + target.index_select(0, adjacency.row)
    score = F.leaky_relu(score, negative_slope)
    if adjacency.weight is not None:
        score = score + adjacency.weight.to(score.dtype).log()[:, None]
    share, log_denominator = _segment_softmax(score, adjacency.row, adjacency.num_rows)
    out = values.new_zeros(adjacency.num_rows, *values.shape[1:])
    messages = share[..., None] * values.index_select(0, adjacency.col)
    return out.index_add(0, adjacency.row, messages), log_denominator


def class_sum(edges: LabelEdges, x: Tensor) -> Tensor:
    """`Yᵀ x`: the sum of `x` `[M, D]` over the nodes that show each class, `[C, D]`."""
    return neighbor_sum(edges.classes, x)


def add_labels_(edges: LabelEdges, x: Tensor, labels: Tensor) -> Tensor:
    """`x + Y labels`: each node that shows its label receives the label's row. `x` `[M, D]` is overwritten."""
    return x.index_add_(0, edges.shown, labels.index_select(0, edges.y))


def _with_labels(
    graph: LabelGraph, nodes: Tensor, labels: Tensor | None, add: Tensor | None, scale: Tensor | None
) -> Tensor:
    if labels is not None:
        message = pad_columns(labels.index_select(0, graph.y), nodes.size(1))
        scale = None if scale is None else scale.index_select(0, graph.shown)
        nodes = nodes.index_add(0, graph.shown, _scaled(message, scale))
    return nodes if add is None else nodes + add


def label_gather(graph: LabelGraph, labels: Tensor) -> Tensor:
    """The rows of `labels` `[C, D]` that the nodes `graph.shown` show, `[S, D]`."""
    return labels.index_select(0, graph.y)


def project_entries(rows: Adjacency, values: Tensor, weight: Tensor) -> Tensor:
    """`X P` for the entries of `X` `[M, F]` in compressed rows, with `values` `[entries]`; gives `[M, D]`.

    `weight` is `Pᵀ` `[D, F]`.
    """
    return neighbor_sum(rows.with_weight(values), weight.T)


def finish(x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None) -> Tensor:
    """`dropout(relu(norm(x)))` `[n, D]`; no dropout where `seed` is None."""
    x = F.relu(x if norm is None else normed(norm, x))
    return x if seed is None else dropped(x, dropout, seed)


def normed(norm: Norm, x: Tensor) -> Tensor:
    """`norm(x)` in the precision of `x`, over the columns that are the norm's own; zeros that fill up stay zero."""
    mine = x[:, : norm.weight.size(0)]
    if isinstance(norm, nn.LayerNorm):
        weight, bias = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
        mine = F.layer_norm(mine, norm.normalized_shape, weight, bias, norm.eps)
    else:
        mine = norm(mine)
    return pad_columns(mine, x.size(1))


def dropped(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """`x` `[n, D]` with entries dropped by `kept`, the others divided by `1 - dropout`."""
    return torch.where(kept(x.size(0), x.size(1), dropout, seed), x / (1 - dropout), 0)


def kept(rows: int, columns: int, dropout: float, seed: Tensor) -> Tensor:
    """`[rows, columns]` bool: which entries dropout keeps.

    A hash of the row, the column and `seed` (two numbers below 2³²) decides, so that every form of the operation drops
    the same entries, and one thread can do so without waiting for another.
    """
    low, high = seed.tolist()
    row, column = torch.arange(rows, device=seed.device), torch.arange(columns, device=seed.device)
    return random_words(row[:, None], column, (low, high)) >= threshold(dropout)


def threshold(dropout: float) -> int:
    """A random 32-bit word is below this with probability `dropout`."""
    return min(round(dropout * 2**32), WORD)


def _scaled(x: Tensor, scale: Tensor | None) -> Tensor:
    return x if scale is None else x * scale.to(x.dtype).view(-1, *[1] * (x.dim() - 1))


def _segment_softmax(score: Tensor, segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """Softmax of `score` `[E, heads]` within each segment, and its log-denominator `[segments, heads]`."""
    # the largest score is taken off for range only: it is a constant to the gradient
    with torch.no_grad():
        largest = score.new_full((num_segments, score.size(1)), -torch.inf)
        largest = largest.scatter_reduce(0, segment.long()[:, None].expand_as(score), score, "amax")
    exponent = (score - largest.index_select(0, segment)).exp()
    denominator = score.new_zeros(num_segments, score.size(1)).index_add(0, segment, exponent)
    return exponent / denominator.index_select(0, segment), denominator.log() + largest
