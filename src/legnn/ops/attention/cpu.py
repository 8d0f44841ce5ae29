"""Attention on a CPU, in numba: its denominator, its sum, and its gradient along the transpose."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.cpu import edge_arrays, term_arrays, write_row
from legnn.ops.runtime.arrays import as_array, as_matrix, as_output, empty_padded
from legnn.ops.runtime.fork_join import fork_join
from legnn.ops.runtime.jit import exponentiate, kernel, narrow, widen
from legnn.ops.runtime.padding import padded_width
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import AttentionGradient, AttentionInputs, RowTerms, Softmax

READS_SHARE = True


@kernel
def _softmax(begin, end, heads, rowptr, col, weight, source, target, slope, largest, total, share):
    if fork_join(begin, end):
        return
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
def _attention_sum(
    begin, end, rowptr, col, share, values, channels,
    source_scale, target_scale, label_of, label_rows, label_scale, add, out,
):  # fmt: skip
    if fork_join(begin, end):
        return
    heads = share.shape[1]
    width = np.uint64(channels // heads)
    total = np.empty(channels, np.float32)
    for i in range(begin, end):
        total[:] = 0
        for first in range(rowptr[i], rowptr[i + 1], 2):
            # two edges at once: each alone would load and store all of `total`
            second = first + 1 if first + 1 < rowptr[i + 1] else first
            a, b = values[col[first]], values[col[second]]
            for h in range(heads):
                one, two = share[first, h], share[second, h] if second > first else np.float32(0)
                if source_scale.size:
                    one, two = one * source_scale[col[first]], two * source_scale[col[second]]
                # unsigned, no index can be negative: only then does the compiler vectorize the loop
                low = np.uint64(h) * width
                for c in range(low, low + width):
                    total[c] += one * widen(a[c]) + two * widen(b[c])
        write_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def _value_gradient(
    begin, end, rowptr, col, origin, share, values, channels, gradient, source_scale, target_scale, into, product, add,
):  # fmt: skip
    if fork_join(begin, end):
        return
    heads = share.shape[1]
    width = np.uint64(channels // heads)
    total = np.empty(channels, np.float32)
    value = np.empty(channels, np.float32)
    for j in range(begin, end):
        if add and rowptr[j] == rowptr[j + 1]:
            continue
        total[:] = 0
        for c in range(channels):
            value[c] = widen(values[j, c])
        for first in range(rowptr[j], rowptr[j + 1], 2):
            second = first + 1 if first + 1 < rowptr[j + 1] else first
            a, b = gradient[col[first]], gradient[col[second]]
            for h in range(heads):
                one = share[origin[first], h]
                two = share[origin[second], h] if second > first else np.float32(0)
                if target_scale.size:
                    one, two = one * target_scale[col[first]], two * target_scale[col[second]]
                low = np.uint64(h) * width
                for c in range(low, low + width):
                    total[c] += one * widen(a[c]) + two * widen(b[c])
                # a loop of its own, which writes nothing: see `cpu_layer_norm`
                product_a = product_b = np.float32(0)
                for c in range(low, low + width):
                    product_a += widen(a[c]) * value[c]
                    product_b += widen(b[c]) * value[c]
                product[origin[first], h], product[origin[second], h] = product_a, product_b
        row = into[j]
        sends = source_scale[j] if source_scale.size else np.float32(1)
        for c in range(channels):
            before = widen(row[c]) if add else np.float32(0)
            row[c] = narrow(before + sends * total[c], into)


@kernel
def _score_gradient(
    begin, end, heads, rowptr, col, share, source, target, slope, d_log, source_scale, target_scale, product, d_target
):  # fmt: skip
    if fork_join(begin, end):
        return
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


@kernel
def _sum_edges(begin, end, heads, rowptr, place, x, out):
    if fork_join(begin, end):
        return
    width = np.uint64(len(heads))
    for i in range(np.uint64(begin), np.uint64(end)):
        for h in range(width):
            out[i * width + h] = 0
        for k in range(np.uint64(rowptr[i]), np.uint64(rowptr[i + 1])):
            edge = np.uint64(place[k]) * width
            for h in range(width):
                out[i * width + h] += x[edge + h]


def _as_constant(heads: int) -> tuple[int, ...]:
    """A tuple of length `heads`: the length is part of its type, for which numba compiles a kernel."""
    return (0,) * heads


def _flat(x: Tensor | None) -> np.ndarray:
    """The numbers of `x` row by row, none for None: to make them a vector in a kernel takes long to compile."""
    return as_array(x).reshape(-1)


def softmax(
    adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float, target_scale: Tensor | None
) -> Softmax:
    """See `AttentionKernels`."""
    heads = source.size(1)
    log_denominator, total = torch.empty(2, adjacency.num_rows, heads)
    share = torch.empty(adjacency.num_edges, heads)
    run_parallel(
        _softmax, adjacency.row_partition, 4 * share.numel(), _as_constant(heads), *edge_arrays(adjacency),
        _flat(source), _flat(target), np.float32(slope), _flat(log_denominator), _flat(total), _flat(share),
    )  # fmt: skip
    return Softmax(log_denominator, share, None)


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """See `AttentionKernels`."""
    x, channels = attention.values_and_scores, attention.config.channels
    out = empty_padded(adjacency.num_rows, padded_width(channels, x), channels, x.dtype)
    run_parallel(
        _attention_sum, adjacency.row_partition, adjacency.num_edges * channels, *edge_arrays(adjacency)[:2],
        as_array(attention.share), as_matrix(x, x.dtype), channels, *term_arrays(terms, x.dtype),
        as_output(out),
    )  # fmt: skip
    return out


def attention_gradient(
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, score_scale: Tensor | None
) -> Tensor | None:
    """See `AttentionKernels`."""
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
    d_source = torch.empty(transposed.num_rows, heads)
    run_parallel(
        _sum_edges, transposed.row_partition, product.numel(), _as_constant(heads), transposed.rowptr.numpy(),
        adjacency.inv_perm.numpy(), _flat(product), _flat(d_source),
    )  # fmt: skip
    return d_source, d_target
