"""Attention on a CPU, in numba: its denominator, its sum, and its gradient along the transpose."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.cpu import edge_arrays, sum_heads, sum_rows
from legnn.ops.runtime.arrays import as_array, as_matrix, as_output
from legnn.ops.runtime.jit import exponentiate, kernel, narrow, widen
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import AttentionGradient, AttentionInputs, RowTerms, Softmax

READS_SHARE = True
"""Whether the gradient reads `α_ij`, or computes it again."""


@kernel
def _softmax(begin, end, heads, rowptr, col, weight, source, target, slope, largest, total, share):
    # rows of a few heads lie behind one another: how many there are is known here, so that they are computed together
    width = np.uint64(len(heads))
    for i in range(np.uint64(begin), np.uint64(end)):
        row, first, last = i * width, np.uint64(rowptr[i]), np.uint64(rowptr[i + 1])
        for h in range(width):
            largest[row + h], total[row + h] = -np.inf, 0
        for k in range(first, last):
            edge, sender = k * width, np.uint64(col[k]) * width
            log_weight = np.log(weight[k]) if weight.size else np.float32(0)
            for h in range(width):
                score = source[sender + h] + (target[row + h] if target.size else np.float32(0))
                score = (score if score > 0 else score * slope) + log_weight
                share[edge + h] = score
                largest[row + h] = score if score > largest[row + h] else largest[row + h]
        for k in range(first, last):
            for h in range(width):
                share[k * width + h] -= largest[row + h]
    # of all rows at once: one alone would be a call of the C library, or most of a short vector
    exponentiate(share, np.uint64(rowptr[begin]) * width, np.uint64(rowptr[end]) * width)
    for i in range(np.uint64(begin), np.uint64(end)):
        row, first, last = i * width, np.uint64(rowptr[i]), np.uint64(rowptr[i + 1])
        for k in range(first, last):
            for h in range(width):
                total[row + h] += share[k * width + h]
        for k in range(first, last):
            for h in range(width):
                share[k * width + h] /= total[row + h]
        for h in range(width):
            largest[row + h] += np.log(total[row + h])


@kernel
def _value_gradient(
    begin, end, rowptr, col, origin, share, values, channels, gradient, source_scale, target_scale, into, product, add,
):  # fmt: skip
    heads, columns = np.uint64(share.shape[1]), np.uint64(channels)
    width = columns // heads
    total = np.empty(columns, np.float32)
    value = np.empty(columns, np.float32)
    for j in range(np.uint64(begin), np.uint64(end)):
        last = rowptr[j + np.uint64(1)]
        if add and rowptr[j] == last:
            continue
        for c in range(columns):
            total[c], value[c] = 0, widen(values[j, c])
        for edge in range(rowptr[j], last, 2):
            # two edges at once: each alone would load and store all of `total`
            first, is_pair = np.uint64(edge), edge + 1 < last
            second = np.uint64(edge + 1) if is_pair else first
            a, b = np.uint64(col[first]), np.uint64(col[second])
            at_a, at_b = np.uint64(origin[first]), np.uint64(origin[second])
            for h in range(heads):
                share_a, share_b = share[at_a, h], share[at_b, h] if is_pair else np.float32(0)
                if target_scale.size:
                    share_a, share_b = share_a * target_scale[a], share_b * target_scale[b]
                for c in range(h * width, h * width + width):
                    total[c] += share_a * widen(gradient[a, c]) + share_b * widen(gradient[b, c])
                # a loop that sums up numbers writes nothing: one that does both is compiled twice, and which one runs,
                # with sums in another order, depends on where in memory the arrays are
                product_a = product_b = np.float32(0)
                for c in range(h * width, h * width + width):
                    product_a += widen(gradient[a, c]) * value[c]
                    product_b += widen(gradient[b, c]) * value[c]
                product[at_a, h], product[at_b, h] = product_a, product_b
        sends = source_scale[j] if source_scale.size else np.float32(1)
        for c in range(columns):
            before = widen(into[j, c]) if add else np.float32(0)
            into[j, c] = narrow(before + sends * total[c], into)


@kernel
def _score_gradient(
    begin, end, heads, rowptr, col, share, source, target, slope, d_log, source_scale, target_scale, product, d_target
):  # fmt: skip
    width = np.uint64(len(heads))
    for i in range(np.uint64(begin), np.uint64(end)):
        row, first, last = i * width, np.uint64(rowptr[i]), np.uint64(rowptr[i + 1])
        receives = target_scale[i] if target_scale.size else np.float32(1)
        # at first what the softmax subtracts from the gradient of every score
        for h in range(width):
            d_target[row + h] = -d_log[row + h] if d_log.size else np.float32(0)
        for k in range(first, last):
            scale = receives * source_scale[col[k]] if source_scale.size else receives
            for h in range(width):
                product[k * width + h] *= scale
                d_target[row + h] += share[k * width + h] * product[k * width + h]
        for k in range(first, last):
            edge, sender = k * width, np.uint64(col[k]) * width
            for h in range(width):
                change = share[edge + h] * (product[edge + h] - d_target[row + h])
                score = source[sender + h] + (target[row + h] if target.size else np.float32(0))
                product[edge + h] = change if score > 0 else change * slope
        for h in range(width):
            d_target[row + h] = 0
        for k in range(first, last):
            for h in range(width):
                d_target[row + h] += product[k * width + h]


def _as_constant(heads: int) -> tuple[int, ...]:
    """A tuple of length `heads`: the length is part of its type, for which numba compiles a kernel."""
    return (0,) * heads


def _flat(x: Tensor | None) -> np.ndarray:
    """The numbers of `x` row by row, none for None: to make them a vector in a kernel takes long to compile."""
    return as_array(x).reshape(-1)


def softmax(
    adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float, target_scale: Tensor | None
) -> Softmax:
    """Returns the softmax over the edges of each row, whose sum is multiplied by `target_scale` `[rows]`."""
    heads = source.size(1)
    log_denominator, total = torch.empty(2, adjacency.num_rows, heads)
    share = torch.empty(adjacency.num_edges, heads)
    run_parallel(
        _softmax, adjacency.row_partition, 4 * share.numel(), _as_constant(heads), *edge_arrays(adjacency),
        _flat(source), _flat(target), np.float32(slope), _flat(log_denominator), _flat(total), _flat(share),
    )  # fmt: skip
    return Softmax(log_denominator, share, None)


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """Returns `Σ_j α_ij values_j` `[rows, channels]`, scaled and added to as `terms` say."""
    x, channels = attention.values_and_scores, attention.config.channels
    out = torch.empty(adjacency.num_rows, channels, dtype=x.dtype)
    sum_heads(adjacency, attention.share, attention.config.heads, x, channels, terms, out)
    return out


def attention_gradient(
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, score_scale: Tensor | None
) -> Tensor | None:
    """Writes the gradient of `values_and_scores`, of both relations, into `into`, padding columns included.

    The gradient that the source scores have from the nodes alone is multiplied by `score_scale` `[cols]`. Returns the
    gradient of the target scores of the labels `[C, heads]`, None where there is none.
    """
    channels, heads, _, _ = nodes.inputs.config
    d_source, d_target = _relation_gradient(nodes, into, add=False)
    if score_scale is not None:
        d_source *= score_scale[:, None]
    d_label_target = None
    if labels is not None:
        from_labels, d_label_target = _relation_gradient(labels, into, add=True)
        d_source += from_labels
    scores = into[:, channels:]
    scores[:, :heads] = d_source
    if scores.size(1) > heads:
        scores[:, heads:] = 0
        if nodes.inputs.target is not None:
            # in a sampled block the target nodes are the first of the source nodes
            scores[: d_target.size(0), heads : 2 * heads] = d_target
    return None if labels is None or labels.inputs.target is None else d_label_target


def _relation_gradient(relation: AttentionGradient, into: Tensor, *, add: bool) -> tuple[Tensor, Tensor]:
    """Writes the gradient of the values into the rows of `into`, or adds it to them; returns those of the scores.

    They are of sources `[cols, heads]` and targets `[rows, heads]`.
    """
    adjacency, attention, terms, gradient, d_log, _ = relation
    channels, heads, _, slope = attention.config
    transposed, dtype, share = adjacency.transpose, into.dtype, as_array(attention.share)
    scales = as_array(terms.source_scale), as_array(terms.target_scale)
    # `gradient_i · values_j` within each head, of every edge; then the gradient of its score
    product = torch.empty(adjacency.num_edges, heads)
    run_parallel(
        _value_gradient, transposed.row_partition, transposed.num_edges * channels, *edge_arrays(transposed)[:2],
        adjacency.inv_perm.numpy(), share, as_matrix(attention.values_and_scores, dtype), channels,
        as_matrix(gradient, dtype), *scales, as_output(into), product.numpy(), add,
    )  # fmt: skip
    d_target = torch.empty(adjacency.num_rows, heads)
    run_parallel(
        _score_gradient, adjacency.row_partition, 4 * product.numel(), _as_constant(heads), *edge_arrays(adjacency)[:2],
        _flat(attention.share), _flat(attention.source), _flat(attention.target), np.float32(slope), _flat(d_log),
        *scales, _flat(product), _flat(d_target),
    )  # fmt: skip
    # along the edges in the order of the transpose, by their positions
    edges_of_sources = adjacency.cached(
        "edges of sources", lambda: Adjacency(transposed.rowptr, adjacency.inv_perm, None, adjacency.num_edges)
    )
    return sum_rows(edges_of_sources, product), d_target
