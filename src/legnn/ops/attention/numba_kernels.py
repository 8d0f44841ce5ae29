"""Attention on a CPU, in numba: its denominator, its sum, and its gradient along the transpose."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.numba_kernels import add_scaled, edge_arrays, sum_edges, term_arrays, write_row
from legnn.ops.runtime.arrays import NO_MATRIX, as_array, empty_padded, row_cuts
from legnn.ops.runtime.jit import kernel
from legnn.ops.runtime.padding import padded_width
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import AttentionGradient, AttentionInputs, RowTerms

READS_OUTPUT = True


@kernel
def _leaky(score, slope):
    return score if score > 0 else score * slope


@kernel
def _log_denominator(begin, end, rowptr, col, weight, source, target, slope, out):
    for i in range(begin, end):
        for h in range(source.shape[1]):
            target_score = target[i, h] if target.size else np.float32(0)
            largest = np.float32(-np.inf)
            for k in range(rowptr[i], rowptr[i + 1]):
                score = _leaky(source[col[k], h] + target_score, slope)
                if weight.size:
                    score += np.log(weight[k])
                largest = max(largest, score)
            total = np.float32(0)
            for k in range(rowptr[i], rowptr[i + 1]):
                score = _leaky(source[col[k], h] + target_score, slope)
                if weight.size:
                    score += np.log(weight[k])
                total += np.exp(score - largest)
            out[i, h] = np.log(total) + largest if total > 0 else -np.inf


@kernel
def _dot(a, b):
    total = np.float32(0)
    for c in range(a.size):
        total += a[c] * b[c]
    return total


@kernel
def _attention_sum(
    begin, end, rowptr, col, weight, values, channels, source, target, log_denominator, slope,
    source_scale, target_scale, label_of, label_rows, label_scale, add, out,
):  # fmt: skip
    heads = source.shape[1]
    width = channels // heads
    total = np.empty(channels, np.float32)
    for i in range(begin, end):
        total[:] = 0
        for k in range(rowptr[i], rowptr[i + 1]):
            j = col[k]
            for h in range(heads):
                target_score = target[i, h] if target.size else np.float32(0)
                share = np.exp(_leaky(source[j, h] + target_score, slope) - log_denominator[i, h])
                if weight.size:
                    share *= weight[k]
                if source_scale.size:
                    share *= source_scale[j]
                add_scaled(total[h * width : (h + 1) * width], share, values[j, h * width : (h + 1) * width])
        write_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def _attention_dot(begin, end, gradient, nodes, channels, label_of, label_rows, label_scale, add, out):
    width = channels // out.shape[1]
    value = np.empty(channels, np.float32)
    for i in range(begin, end):
        for c in range(channels):
            value[c] = nodes[i, c]
        y = label_of[i] if label_of.size else -1
        if y >= 0:
            add_scaled(value, -label_scale[i] if label_scale.size else np.float32(-1), label_rows[y])
        if add.size:
            add_scaled(value, np.float32(-1), add[i])
        for h in range(out.shape[1]):
            out[i, h] = _dot(gradient[i, h * width : (h + 1) * width], value[h * width : (h + 1) * width])


@kernel
def _attention_gradient(
    begin, end, rowptr, col, weight, values, channels, source, target, log_denominator, slope, gradient, dot,
    source_scale, target_scale, into, edge_gradient, add,
):  # fmt: skip
    heads = source.shape[1]
    width = channels // heads
    total = np.empty(channels, np.float32)
    scores = np.empty(heads, np.float32)
    for j in range(begin, end):
        if add and rowptr[j] == rowptr[j + 1]:
            continue
        total[:] = 0
        scores[:] = 0
        sends = source_scale[j] if source_scale.size else np.float32(1)
        for k in range(rowptr[j], rowptr[j + 1]):
            i = col[k]
            for h in range(heads):
                score = source[j, h]
                if target.size:
                    score += target[i, h]
                share = np.exp(_leaky(score, slope) - log_denominator[i, h])
                if weight.size:
                    share *= weight[k]
                arrives = share * target_scale[i] if target_scale.size else share
                up = gradient[i, h * width : (h + 1) * width]
                add_scaled(total[h * width : (h + 1) * width], arrives, up)
                product = _dot(up, values[j, h * width : (h + 1) * width])
                change = arrives * sends * product - share * dot[i, h]
                if score <= 0:
                    change *= slope
                scores[h] += change
                if target.size:
                    edge_gradient[k, h] = change
        if not add:
            into[j, : channels + heads] = 0
        add_scaled(into[j, :channels], sends, total)
        add_scaled(into[j, channels : channels + heads], np.float32(1), scores)


def _attention(attention: AttentionInputs) -> tuple[object, ...]:
    scores = as_array(attention.source), as_array(attention.target, NO_MATRIX), as_array(attention.log_denominator)
    slope = np.float32(attention.config.negative_slope)
    return as_array(attention.values_and_scores), attention.config.channels, *scores, slope


def log_denominator(adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> Tensor:
    """See `AttentionKernels`."""
    out = torch.empty(adjacency.num_rows, source.size(1))
    # an exponential is about as much work as ten products
    work = 10 * adjacency.num_edges * source.size(1)
    run_parallel(
        _log_denominator, adjacency.cuts, work, *edge_arrays(adjacency), as_array(source), as_array(target, NO_MATRIX),
        np.float32(slope), out.numpy(),
    )  # fmt: skip
    return out


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """See `AttentionKernels`."""
    x, channels = attention.values_and_scores, attention.config.channels
    out = empty_padded(adjacency.num_rows, padded_width(channels, x), channels)
    run_parallel(
        _attention_sum, adjacency.cuts, adjacency.num_edges * channels, *edge_arrays(adjacency), *_attention(attention),
        *term_arrays(terms), out.numpy(),
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
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, between: Callable[[], None]
) -> tuple[Tensor | None, Tensor | None]:
    """See `AttentionKernels`."""
    d_target = _relation_gradient(nodes, into, add=False)
    between()
    return d_target, None if labels is None else _relation_gradient(labels, into, add=True)


def _relation_gradient(relation: AttentionGradient, into: Tensor, *, add: bool) -> Tensor | None:
    """Writes the gradient into the rows of `into`, or adds it to them; returns that of the scores of the targets."""
    adjacency, attention, terms, output, gradient, d_log = relation
    assert output is not None
    channels, heads, _, _ = attention.config
    # Σ_k α_ik (t_i s_k gradient_i · values_k), which softmax subtracts from the gradient of every score
    dot = _dot_with_output(gradient, output, channels, heads, terms)
    dot = dot if d_log is None else dot - d_log
    transposed = adjacency.transposition.adjacency
    edge_gradient = None if attention.target is None else torch.empty(transposed.num_edges, heads)
    wide = into.float()
    run_parallel(
        _attention_gradient, transposed.cuts, transposed.num_edges * channels, *edge_arrays(transposed),
        *_attention(attention), as_array(gradient), as_array(dot), as_array(terms.source_scale),
        as_array(terms.target_scale), wide.numpy(), as_array(edge_gradient, NO_MATRIX), add,
    )  # fmt: skip
    if wide is not into:
        into.copy_(wide)
    return None if edge_gradient is None else sum_edges(adjacency, edge_gradient, adjacency.transposition.place)
