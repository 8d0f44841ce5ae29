"""Attention on a CPU, in numba: its denominator, its sum, and its gradient along the transpose."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.numba_kernels import add_scaled, edge_arrays, sum_edges, term_arrays, write_row
from legnn.ops.runtime.arrays import NO_MATRIX, as_array, empty_padded, row_cuts
from legnn.ops.runtime.jit import exponentiate, kernel
from legnn.ops.runtime.padding import padded_width
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import AttentionGradient, AttentionInputs, RowTerms

READS_OUTPUT = READS_SHARE = True


@kernel
def _softmax(begin, end, rowptr, col, weight, source, target, slope, log_denominator, share):
    heads = source.shape[1]
    for i in range(begin, end):
        for h in range(heads):
            target_score = target[i, h] if target.size else np.float32(0)
            largest = np.float32(-np.inf)
            for k in range(rowptr[i], rowptr[i + 1]):
                score = source[col[k], h] + target_score
                score = score if score > 0 else score * slope
                if weight.size:
                    score += np.log(weight[k])
                share[k, h] = score
                largest = score if score > largest else largest
            for k in range(rowptr[i], rowptr[i + 1]):
                share[k, h] -= largest
            log_denominator[i, h] = largest
    # of all rows at once: one alone would be a call of the C library, or most of a short vector
    exponentiate(share.reshape(-1), rowptr[begin] * heads, rowptr[end] * heads)
    for i in range(begin, end):
        for h in range(heads):
            total = np.float32(0)
            for k in range(rowptr[i], rowptr[i + 1]):
                total += share[k, h]
            for k in range(rowptr[i], rowptr[i + 1]):
                share[k, h] /= total
            log_denominator[i, h] += np.log(total)


@kernel
def _attention_sum(
    begin, end, rowptr, col, share, values, channels,
    source_scale, target_scale, label_of, label_rows, label_scale, add, out,
):  # fmt: skip
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
                    total[c] += one * a[c] + two * b[c]
        write_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def _attention_dot(begin, end, gradient, nodes, channels, label_of, label_rows, label_scale, add, out):
    width = np.uint64(channels // out.shape[1])
    value = np.empty(channels, np.float32)
    for i in range(begin, end):
        up = gradient[i]
        for c in range(channels):
            value[c] = nodes[i, c]
        y = label_of[i] if label_of.size else -1
        if y >= 0:
            add_scaled(value, -label_scale[i] if label_scale.size else np.float32(-1), label_rows[y])
        if add.size:
            add_scaled(value, np.float32(-1), add[i])
        for h in range(out.shape[1]):
            total = np.float32(0)
            low = np.uint64(h) * width
            for c in range(low, low + width):
                total += up[c] * value[c]
            out[i, h] = total


@kernel
def _attention_gradient(
    begin, end, rowptr, col, origin, share, values, channels, source, target, slope, gradient, dot,
    source_scale, target_scale, into, edge_gradient, add,
):  # fmt: skip
    heads = share.shape[1]
    width = np.uint64(channels // heads)
    total = np.empty(channels, np.float32)
    scores = np.empty(heads, np.float32)
    for j in range(begin, end):
        if add and rowptr[j] == rowptr[j + 1]:
            continue
        total[:] = 0
        scores[:] = 0
        sends = source_scale[j] if source_scale.size else np.float32(1)
        value, row = values[j], into[j]
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
                    total[c] += one * a[c] + two * b[c]
                product_a = product_b = np.float32(0)
                for c in range(low, low + width):
                    product_a += a[c] * value[c]
                    product_b += b[c] * value[c]
                edge_gradient[first, h], edge_gradient[second, h] = product_a, product_b
        for k in range(rowptr[j], rowptr[j + 1]):
            i = col[k]
            sent = sends * target_scale[i] if target_scale.size else sends
            for h in range(heads):
                change = share[origin[k], h] * (sent * edge_gradient[k, h] - dot[i, h])
                if source[j, h] + (target[i, h] if target.size else np.float32(0)) <= 0:
                    change *= slope
                scores[h] += change
                edge_gradient[k, h] = change
        if not add:
            row[: channels + heads] = 0
        for c in range(channels):
            row[c] += sends * total[c]
        for h in range(heads):
            row[channels + h] += scores[h]


def softmax(adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> tuple[Tensor, Tensor]:
    """See `AttentionKernels`."""
    log_denominator = torch.empty(adjacency.num_rows, source.size(1))
    share = torch.empty(adjacency.num_edges, source.size(1))
    run_parallel(
        _softmax, adjacency.cuts, 4 * share.numel(), *edge_arrays(adjacency), as_array(source),
        as_array(target, NO_MATRIX), np.float32(slope), log_denominator.numpy(), share.numpy(),
    )  # fmt: skip
    return log_denominator, share


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """See `AttentionKernels`."""
    x, channels = attention.values_and_scores, attention.config.channels
    out = empty_padded(adjacency.num_rows, padded_width(channels, x), channels)
    run_parallel(
        _attention_sum, adjacency.cuts, adjacency.num_edges * channels, *edge_arrays(adjacency)[:2],
        as_array(attention.share), as_array(x), channels, *term_arrays(terms), out.numpy(),
    )  # fmt: skip
    return out.to(x.dtype)


def _dot_with_output(gradient: Tensor, nodes: Tensor, channels: int, heads: int, terms: RowTerms) -> Tensor:
    """`gradient · (nodes - l label_rows - add)` within each head, `[rows, heads]`."""
    out = torch.empty(gradient.size(0), heads)
    run_parallel(
        _attention_dot, row_cuts(gradient.size(0)), gradient.numel(), as_array(gradient), as_array(nodes), channels,
        *term_arrays(terms)[2:], out.numpy(),
    )  # fmt: skip
    return out


def attention_gradient(
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, score_scale: Tensor | None
) -> Tensor | None:
    """See `AttentionKernels`."""
    channels, heads, _, _ = nodes.inputs.config
    d_target, rest = _relation_gradient(nodes, into, add=False), into[:, channels + heads :]
    if d_target is None:
        rest.zero_()
    else:
        # in a sampled block the target nodes are the first of the source nodes
        rest.copy_(F.pad(d_target, (0, rest.size(1) - heads, 0, rest.size(0) - d_target.size(0))))
    if score_scale is not None:
        into[:, channels : channels + heads].mul_(score_scale[:, None])
    return None if labels is None else _relation_gradient(labels, into, add=True)


def _relation_gradient(relation: AttentionGradient, into: Tensor, *, add: bool) -> Tensor | None:
    """Writes the gradient into the rows of `into`, or adds it to them; returns that of the scores of the targets."""
    adjacency, attention, terms, output, gradient, d_log, _ = relation
    assert output is not None
    channels, heads, _, _ = attention.config
    # Σ_k α_ik (t_i s_k gradient_i · values_k), which softmax subtracts from the gradient of every score
    dot = _dot_with_output(gradient, output, channels, heads, terms)
    dot = dot if d_log is None else dot - d_log
    transposition = adjacency.transposition
    transposed = transposition.adjacency
    edge_gradient = torch.empty(transposed.num_edges, heads)
    wide = into.float()
    run_parallel(
        _attention_gradient, transposed.cuts, transposed.num_edges * channels, *edge_arrays(transposed)[:2],
        transposition.origin.numpy(), as_array(attention.share), as_array(attention.values_and_scores), channels,
        as_array(attention.source), as_array(attention.target, NO_MATRIX),
        np.float32(attention.config.negative_slope), as_array(gradient), as_array(dot),
        as_array(terms.source_scale), as_array(terms.target_scale), wide.numpy(), edge_gradient.numpy(), add,
    )  # fmt: skip
    if wide is not into:
        into.copy_(wide)
    return None if attention.target is None else sum_edges(adjacency, edge_gradient, transposition.place)
