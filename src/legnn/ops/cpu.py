"""The kernels of a CPU, in numba.

PyTorch's own sparse product is as fast as the sum over neighbors here, but does nothing else; these do the scaling, the
attention and the labels in the same pass. Its dropout is slow (one thread draws every number): a hash of the place is
about twenty times faster. bf16 is widened to single precision on the way in and narrowed on the way out.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.graph.adjacency import Adjacency
from legnn.ops.layout import lanes, widen
from legnn.ops.messages import Attention, LabelMessage
from legnn.ops.reference import GOLDEN, threshold
from legnn.ops.threads import kernel, run

ROWS = 256
"""Rows over which one part of a pass over a matrix goes; a fixed number, so that column sums do not depend on the
number of threads."""

_NOTHING = np.empty(0, np.float32)
_NO_MATRIX = np.empty((0, 0), np.float32)
_NO_CLASSES = np.empty(0, np.int32)


@kernel
def _leaky(score, slope):
    return score if score > 0 else score * slope


@kernel
def _sum_rows(
    begin, end, rowptr, col, weight, x, source_scale, target_scale, label_of, label_rows, label_scale, add, out
):
    columns = x.shape[1]
    total = np.empty(columns, np.float32)
    for i in range(begin, end):
        total[:] = 0
        for k in range(rowptr[i], rowptr[i + 1]):
            j = col[k]
            share = np.float32(1)
            if weight.size:
                share *= weight[k]
            if source_scale.size:
                share *= source_scale[j]
            for c in range(columns):
                total[c] += share * x[j, c]
        _end_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def _end_row(i, total, target_scale, label_of, label_rows, label_scale, add, out):
    if target_scale.size:
        for c in range(total.size):
            total[c] *= target_scale[i]
    y = label_of[i] if label_of.size else -1
    if y >= 0:
        _add_to(total, label_scale[i] if label_scale.size else np.float32(1), label_rows[y])
    if add.size:
        _add_to(total, np.float32(1), add[i])
    for c in range(total.size):
        out[i, c] = total[c]


@kernel
def _add_to(total, share, values):
    # by slices that begin at zero: only then does the compiler see that the loop can go by vectors
    for c in range(total.size):
        total[c] += share * values[c]


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
                _add_to(total[h * width : (h + 1) * width], share, sent[j, h * width : (h + 1) * width])
        _end_row(i, total, target_scale, label_of, label_rows, label_scale, add, out)


@kernel
def _attention_dot(begin, end, gradient, nodes, channels, label_of, label_rows, label_scale, add, out):
    width = channels // out.shape[1]
    value = np.empty(channels, np.float32)
    for i in range(begin, end):
        for c in range(channels):
            value[c] = nodes[i, c]
        y = label_of[i] if label_of.size else -1
        if y >= 0:
            _add_to(value, -label_scale[i] if label_scale.size else np.float32(-1), label_rows[y])
        if add.size:
            _add_to(value, np.float32(-1), add[i])
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
                _add_to(total[h * width : (h + 1) * width], arrives, up)
                product = _dot(up, sent[j, h * width : (h + 1) * width])
                change = arrives * sends * product - share * dot[i, h]
                if score <= 0:
                    change *= slope
                scores[h] += change
                if target.size:
                    edge_gradient[k, h] = change
        if not add:
            into[j, : channels + heads] = 0
        _add_to(into[j, :channels], sends, total)
        _add_to(into[j, channels : channels + heads], np.float32(1), scores)


@kernel
def _add_label_rows(begin, end, x, shown, y, rows):
    for s in range(begin, end):
        _add_to(x[shown[s]], np.float32(1), rows[y[s]])


@kernel
def _mixed(word):
    # as in reference.kept; numba widens every product, and vectors of narrow words are twice as long
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 16)) * np.uint32(0x7FEB352D))
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 15)) * np.uint32(0x846CA68B))
    return np.uint32(word ^ np.uint32(word >> 16))


@kernel
def _activate(begin, end, x, scale, shift, low, high, least, factor, relu, drops, out):
    columns = x.shape[1]
    golden = np.uint32(GOLDEN)
    line = np.empty(columns, np.float32)
    for i in range(begin, end):
        for c in range(columns):
            line[c] = x[i, c]
        if scale.size:
            for c in range(columns):
                line[c] = line[c] * scale[c] + shift[c]
        if relu:
            for c in range(columns):
                line[c] = line[c] if line[c] > 0 else np.float32(0)
        if drops:
            key = np.uint32(_mixed(np.uint32(np.uint32(i) ^ low)) ^ high)
            for c in range(columns):
                word = _mixed(np.uint32(key + np.uint32(np.uint32(c) * golden)))
                line[c] = line[c] * factor if word >= least else np.float32(0)
        for c in range(columns):
            out[i, c] = line[c]


@kernel
def _activate_gradient(begin, end, gradient, out, factor, into):
    for i in range(begin, end):
        for c in range(gradient.shape[1]):
            into[i, c] = gradient[i, c] * factor if out[i, c] > 0 else np.float32(0)


@kernel
def _statistics(begin, end, x, shift, partial, rows):
    for part in range(begin, end):
        sums, squares = partial[part, 0], partial[part, 1]
        sums[:] = 0
        squares[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            for c in range(shift.size):
                # squares are taken around the running mean, not around zero, where they would lose digits
                away = x[i, c] - shift[c]
                sums[c] += away
                squares[c] += away * away


@kernel
def _norm_gradient_sums(begin, end, gradient, out, x, mean, inverse, factor, partial, rows):
    for part in range(begin, end):
        sums, products = partial[part, 0], partial[part, 1]
        sums[:] = 0
        products[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            for c in range(mean.size):
                up = gradient[i, c] * factor if out[i, c] > 0 else np.float32(0)
                sums[c] += up
                products[c] += up * ((x[i, c] - mean[c]) * inverse[c])


@kernel
def _norm_gradient(begin, end, gradient, out, x, mean, inverse, gain, mean_up, mean_product, factor, into):
    for i in range(begin, end):
        for c in range(mean.size):
            up = gradient[i, c] * factor if out[i, c] > 0 else np.float32(0)
            value = (x[i, c] - mean[c]) * inverse[c]
            into[i, c] = gain[c] * (up - mean_up[c] - value * mean_product[c])


def _array(x: Tensor | None, nothing: np.ndarray = _NOTHING) -> np.ndarray:
    """`x` as a contiguous array in single precision, an empty one for None."""
    return nothing if x is None else x.detach().float().contiguous().numpy()


def _label(label: LabelMessage | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if label is None:
        return _NO_CLASSES, _NO_MATRIX, _NOTHING
    return label.label_of.numpy(), _array(label.rows), _array(label.scale)


def _attention(attention: Attention) -> tuple[object, ...]:
    scores = _array(attention.source), _array(attention.target, _NO_MATRIX), _array(attention.log_denominator)
    return _array(attention.sent), attention.channels, *scores, np.float32(attention.slope)


def _edges(adjacency: Adjacency) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return adjacency.rowptr.numpy(), adjacency.col.numpy(), _array(adjacency.weight)


def _blank(rows: int, width: int, columns: int) -> Tensor:
    """`[rows, width]`, of which the first `columns` will be written and the others are zero."""
    return torch.empty(rows, width) if width == columns else torch.zeros(rows, width)


def _cuts(rows: int) -> list[int]:
    return [*range(0, rows, ROWS), rows]


def sum_rows(
    adjacency: Adjacency,
    x: Tensor,
    source_scale: Tensor | None = None,
    target_scale: Tensor | None = None,
    label: LabelMessage | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(adjacency.num_rows, x.size(1))
    run(
        _sum_rows, adjacency.cuts, adjacency.num_edges * x.size(1), *_edges(adjacency), _array(x),
        _array(source_scale), _array(target_scale), *_label(label), _array(add, _NO_MATRIX), out.numpy(),
    )  # fmt: skip
    return out.to(x.dtype)


def sum_edges(adjacency: Adjacency, x: Tensor, place: Tensor) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(adjacency.num_rows, x.size(1))
    run(
        _sum_rows, adjacency.cuts, x.numel(), adjacency.rowptr.numpy(), place.numpy(), _NOTHING, _array(x),
        _NOTHING, _NOTHING, *_label(None), _NO_MATRIX, out.numpy(),
    )  # fmt: skip
    return out


def log_denominator(adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> Tensor:
    """See `fused.Kernels`."""
    out = torch.empty(adjacency.num_rows, source.size(1))
    run(
        # an exponential is about as much work as ten products
        _log_denominator, adjacency.cuts, 10 * adjacency.num_edges * source.size(1), *_edges(adjacency), _array(source),
        _array(target, _NO_MATRIX), np.float32(slope), out.numpy(),
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
    out = _blank(adjacency.num_rows, lanes(channels, sent), channels)
    run(
        _attention_sum, adjacency.cuts, adjacency.num_edges * channels, *_edges(adjacency), *_attention(attention),
        _array(source_scale), _array(target_scale), *_label(label), _array(add, _NO_MATRIX), out.numpy(),
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
    run(
        _attention_dot, _cuts(gradient.size(0)), gradient.numel(), _array(gradient), _array(nodes), channels,
        *_label(label), _array(add, _NO_MATRIX), out.numpy(),
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
    run(
        _attention_gradient, turned.cuts, turned.num_edges * attention.channels, *_edges(turned),
        *_attention(attention), _array(gradient), _array(dot), _array(source_scale), _array(target_scale),
        wide.numpy(), _array(edge_gradient, _NO_MATRIX), add,
    )  # fmt: skip
    if wide is not into:
        into.copy_(wide)
    return edge_gradient


def add_label_rows(x: Tensor, shown: Tensor, y: Tensor, rows: Tensor) -> None:
    """See `fused.Kernels`."""
    wide = x.float()
    work = shown.numel() * x.size(1)
    run(_add_label_rows, _cuts(shown.numel()), work, wide.numpy(), shown.numpy(), y.numpy(), _array(rows))
    if wide is not x:
        x.copy_(wide)


def batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See `fused.Kernels`."""
    rows = x.size(0)
    parts = -(-rows // ROWS)
    partial = torch.empty(parts, 2, running_mean.numel())
    run(_statistics, range(parts + 1), x.numel(), _array(x), _array(running_mean), partial.numpy(), ROWS)
    away, squares = partial.double().sum(0) / rows
    variance = (squares - away.square()).clamp(min=0)
    mean = running_mean + away.float()
    inverse = torch.rsqrt(variance + eps).float()
    running_mean += momentum * away.float()
    running_var += momentum * ((variance * (rows / max(rows - 1, 1))).float() - running_var)
    scale = weight * inverse
    return mean, inverse, scale, bias - mean * scale


def activate(x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None) -> Tensor:
    """See `fused.Kernels`."""
    if scale is not None and shift is not None:
        scale, shift = widen(scale, x.size(1)), widen(shift, x.size(1))
    return _elementwise(x, scale, shift, dropout, seed, relu=True)


def drop(x: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """See `fused.Kernels`."""
    return _elementwise(x, None, None, dropout, seed, relu=False)


def _elementwise(
    x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None, *, relu: bool
) -> Tensor:
    out = torch.empty(x.shape)
    low, high = (0, 0) if seed is None else seed.tolist()
    run(
        _activate, _cuts(x.size(0)), x.numel(), _array(x), _array(scale), _array(shift),
        np.uint32(low), np.uint32(high), np.uint32(threshold(dropout)), np.float32(1 / (1 - dropout)), relu,
        seed is not None, out.numpy(),
    )  # fmt: skip
    return out.to(x.dtype)


def activate_gradient(gradient: Tensor, out: Tensor, factor: float) -> Tensor:
    """See `fused.Kernels`."""
    into = torch.empty(gradient.shape)
    run(
        _activate_gradient, _cuts(out.size(0)), out.numel(), _array(gradient), _array(out), np.float32(factor),
        into.numpy(),
    )  # fmt: skip
    return into.to(gradient.dtype)


def batch_norm_gradient(
    gradient: Tensor, out: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor, factor: float
) -> tuple[Tensor, Tensor, Tensor]:
    """See `fused.Kernels`."""
    rows = x.size(0)
    parts = -(-rows // ROWS)
    partial = torch.empty(parts, 2, mean.numel())
    matrices = _array(gradient), _array(out), _array(x), _array(mean), _array(inverse)
    run(_norm_gradient_sums, range(parts + 1), x.numel(), *matrices, np.float32(factor), partial.numpy(), ROWS)
    d_bias, d_weight = partial.double().sum(0).float()
    into = _blank(rows, x.size(1), mean.numel())
    run(
        _norm_gradient, _cuts(rows), x.numel(), *matrices, _array(weight * inverse), _array(d_bias / rows),
        _array(d_weight / rows), np.float32(factor), into.numpy(),
    )  # fmt: skip
    return into.to(gradient.dtype), d_weight, d_bias
