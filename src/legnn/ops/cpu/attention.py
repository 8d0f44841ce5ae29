"""Attention: its denominator, its sum, and its gradient along the transpose."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.cpu.arrays import NO_MATRIX, array, blank, cuts_of, edge_arrays, label_arrays
from legnn.ops.cpu.sums import add_to, end_row
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.runtime.jit import kernel
from legnn.ops.runtime.padding import padded_width
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import Attention, LabelMessage


@kernel
def _leaky(score, slope):
    return score if score > 0 else score * slope


@kernel
def _log_denominator(begin, end, rowptr, col, weight, source, target, slope, out):
    for i in range(begin, end):
        for h in range(source.shape[1]):
            looked = target[i, h] if target.size else np.float32(0)
            largest = np.float32(-np.inf)
            for k in range(rowptr[i], rowptr[i + 1]):
                score = _leaky(source[col[k], h] + looked, slope)
                if weight.size:
                    score += np.log(weight[k])
                largest = max(largest, score)
            total = np.float32(0)
            for k in range(rowptr[i], rowptr[i + 1]):
                score = _leaky(source[col[k], h] + looked, slope)
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
    begin, end, rowptr, col, weight, sent, channels, source, target, log_denominator, slope, source_scale, target_scale,
    label_of, label_rows, label_scale, add, out,
):  # fmt: skip
    heads = source.shape[1]
    width = channels // heads
    total = np.empty(channels, np.float32)
    for i in range(begin, end):
        total[:] = 0
        for k in range(rowptr[i], rowptr[i + 1]):
            j = col[k]
            for h in range(heads):
                looked = target[i, h] if target.size else np.float32(0)
                share = np.exp(_leaky(source[j, h] + looked, slope) - log_denominator[i, h])
                if weight.size:
                    share *= weight[k]
                if source_scale.size:
                    share *= source_scale[j]
                add_to(total[h * width : (h + 1) * width], share, sent[j, h * width : (h + 1) * width])
        end_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def _attention_dot(begin, end, gradient, nodes, channels, label_of, label_rows, label_scale, add, out):
    width = channels // out.shape[1]
    value = np.empty(channels, np.float32)
    for i in range(begin, end):
        for c in range(channels):
            value[c] = nodes[i, c]
        y = label_of[i] if label_of.size else -1
        if y >= 0:
            add_to(value, -label_scale[i] if label_scale.size else np.float32(-1), label_rows[y])
        if add.size:
            add_to(value, np.float32(-1), add[i])
        for h in range(out.shape[1]):
            out[i, h] = _dot(gradient[i, h * width : (h + 1) * width], value[h * width : (h + 1) * width])


@kernel
def _attention_gradient(
    begin, end, rowptr, col, weight, sent, channels, source, target, log_denominator, slope, gradient, dot,
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
                add_to(total[h * width : (h + 1) * width], arrives, up)
                product = _dot(up, sent[j, h * width : (h + 1) * width])
                change = arrives * sends * product - share * dot[i, h]
                if score <= 0:
                    change *= slope
                scores[h] += change
                if target.size:
                    edge_gradient[k, h] = change
        if not add:
            into[j, : channels + heads] = 0
        add_to(into[j, :channels], sends, total)
        add_to(into[j, channels : channels + heads], np.float32(1), scores)


def _attention(attention: Attention) -> tuple[object, ...]:
    scores = array(attention.source), array(attention.target, NO_MATRIX), array(attention.log_denominator)
    return array(attention.sent), attention.channels, *scores, np.float32(attention.slope)


def log_denominator(adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(adjacency.num_rows, source.size(1))
    # an exponential is about as much work as ten products
    work = 10 * adjacency.num_edges * source.size(1)
    run_parallel(
        _log_denominator, adjacency.cuts, work, *edge_arrays(adjacency), array(source), array(target, NO_MATRIX),
        np.float32(slope), out.numpy(),
    )  # fmt: skip
    return out


def attention_sum(
    adjacency: Adjacency,
    attention: Attention,
    source_scale: Tensor | None = None,
    target_scale: Tensor | None = None,
    label: LabelMessage | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """See `fused.Kernels`."""
    sent, channels = attention.sent, attention.channels
    out = blank(adjacency.num_rows, padded_width(channels, sent), channels)
    run_parallel(
        _attention_sum, adjacency.cuts, adjacency.num_edges * channels, *edge_arrays(adjacency), *_attention(attention),
        array(source_scale), array(target_scale), *label_arrays(label), array(add, NO_MATRIX), out.numpy(),
    )  # fmt: skip
    return out.to(sent.dtype)


def attention_dot(
    gradient: Tensor,
    nodes: Tensor,
    channels: int,
    heads: int,
    label: LabelMessage | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(gradient.size(0), heads)
    run_parallel(
        _attention_dot, cuts_of(gradient.size(0)), gradient.numel(), array(gradient), array(nodes), channels,
        *label_arrays(label), array(add, NO_MATRIX), out.numpy(),
    )  # fmt: skip
    return out


def attention_gradient(
    turned: Adjacency,
    attention: Attention,
    gradient: Tensor,
    dot: Tensor,
    source_scale: Tensor | None,
    target_scale: Tensor | None,
    into: Tensor,
    *,
    add: bool,
) -> Tensor | None:
    """See `fused.Kernels`."""
    edge_gradient = None if attention.target is None else torch.empty(turned.num_edges, attention.heads)
    wide = into.float()
    run_parallel(
        _attention_gradient, turned.cuts, turned.num_edges * attention.channels, *edge_arrays(turned),
        *_attention(attention), array(gradient), array(dot), array(source_scale), array(target_scale),
        wide.numpy(), array(edge_gradient, NO_MATRIX), add,
    )  # fmt: skip
    if wide is not into:
        into.copy_(wide)
    return edge_gradient
