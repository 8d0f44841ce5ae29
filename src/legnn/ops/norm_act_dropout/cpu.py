"""Batch norm, activation and dropout on a CPU, in numba.

PyTorch's dropout draws every number on one thread; a hash of the place is many times faster.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from legnn.ops.norm_act_dropout.reference import drop_threshold, running_statistics
from legnn.ops.runtime.arrays import ROWS_PER_PART, as_array, as_matrix, as_output, empty_padded, row_cuts
from legnn.ops.runtime.hashing import GOLDEN
from legnn.ops.runtime.jit import kernel, mix, narrow, widen
from legnn.ops.runtime.padding import pad_columns
from legnn.ops.runtime.threads import run_parallel
from legnn.ops.types import NormInputs

NO_ROWS = np.empty(0, bool)


@kernel
def _scale_act_dropout(begin, end, x, scale, shift, low, high, least, factor, relu, drops, out):
    columns, golden = x.shape[1], np.uint32(GOLDEN)
    line = np.empty(columns, np.float32)
    for i in range(begin, end):
        for c in range(columns):
            line[c] = widen(x[i, c])
        if scale.size:
            for c in range(columns):
                line[c] = line[c] * scale[c] + shift[c]
        if relu:
            for c in range(columns):
                line[c] = line[c] if line[c] > 0 else np.float32(0)
        if drops:
            key = np.uint32(mix(np.uint32(np.uint32(i) ^ low)) ^ high)
            for c in range(columns):
                word = mix(np.uint32(key + np.uint32(np.uint32(c) * golden)))
                line[c] = line[c] * factor if word >= least else np.float32(0)
        for c in range(columns):
            out[i, c] = narrow(line[c], out)


@kernel
def _statistics(begin, end, x, real, shift, partial, rows):
    for part in range(begin, end):
        sums, squares = partial[part, 0], partial[part, 1]
        sums[:] = 0
        squares[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            if real.size and not real[i]:
                continue
            for c in range(shift.size):
                # squares are taken around the running mean, not around zero, where they would lose digits
                away = widen(x[i, c]) - shift[c]
                sums[c] += away
                squares[c] += away * away


@kernel
def _norm_gradient_sums(begin, end, gradient, out, x, real, mean, inverse, factor, partial, rows):
    for part in range(begin, end):
        sums, products = partial[part, 0], partial[part, 1]
        sums[:] = 0
        products[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            if real.size and not real[i]:
                continue
            for c in range(mean.size):
                up = widen(gradient[i, c]) * factor if widen(out[i, c]) > 0 else np.float32(0)
                sums[c] += up
                products[c] += up * ((widen(x[i, c]) - mean[c]) * inverse[c])


@kernel
def _norm_gradient(begin, end, gradient, out, x, real, mean, inverse, gain, mean_up, mean_product, factor, into):
    for i in range(begin, end):
        if real.size and not real[i]:
            into[i, :] = 0
            continue
        for c in range(mean.size):
            up = widen(gradient[i, c]) * factor if widen(out[i, c]) > 0 else np.float32(0)
            value = (widen(x[i, c]) - mean[c]) * inverse[c]
            into[i, c] = narrow(gain[c] * (up - mean_up[c] - value * mean_product[c]), into)


def _column_sums(sum_parts: Callable[..., None], x: Tensor, columns: int, *arguments: Any) -> Tensor:
    """The two sums over the rows of `x` that `sum_parts` takes, `[2, columns]` in double precision."""
    parts = -(-x.size(0) // ROWS_PER_PART)
    partial = torch.empty(parts, 2, columns)
    run_parallel(sum_parts, range(parts + 1), x.numel(), *arguments, partial.numpy(), ROWS_PER_PART)
    return partial.double().sum(0)


def _rows_and_number(real: Tensor | None, size: int) -> tuple[np.ndarray, int]:
    """Which rows are those of nodes, an empty array for all of them, and how many."""
    return (NO_ROWS, size) if real is None else (real.numpy(), int(real.sum()))


def batch_norm_statistics(x: Tensor, norm: nn.BatchNorm1d, real: Tensor | None) -> NormInputs:
    """Returns the statistics of the columns, of the rows that are `real` alone, if any are given.

    Updates the running statistics in place. `x` may have more columns than those: they are zero, and stay zero.
    """
    running_mean, running_var, momentum = running_statistics(norm)
    rows, size = _rows_and_number(real, x.size(0))
    sums = _column_sums(_statistics, x, running_mean.numel(), as_matrix(x, x.dtype), rows, as_array(running_mean))
    away, squares = sums / size
    variance = (squares - away.square()).clamp(min=0)
    mean = running_mean + away.float()
    inverse = torch.rsqrt(variance + norm.eps).float()
    running_mean += momentum * away.float()
    running_var += momentum * ((variance * (size / max(size - 1, 1))).float() - running_var)
    scale = norm.weight * inverse
    return NormInputs(mean, inverse, scale, norm.bias - mean * scale)


def scale_act_dropout(
    x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None, *, relu: bool
) -> Tensor:
    """Returns `dropout(relu(scale ∘ x + shift))`, without dropout if `seed` is None."""
    if scale is not None and shift is not None:
        scale, shift = pad_columns(scale, x.size(1)), pad_columns(shift, x.size(1))
    out = torch.empty(x.shape, dtype=x.dtype)
    low, high = (0, 0) if seed is None else seed.tolist()
    factor = 1.0 if seed is None else 1 / (1 - dropout)
    words = np.uint32(low), np.uint32(high), np.uint32(drop_threshold(dropout)), np.float32(factor)
    run_parallel(
        _scale_act_dropout, row_cuts(x.size(0)), x.numel(), as_matrix(x, x.dtype), as_array(scale), as_array(shift),
        *words, relu, seed is not None, as_output(out),
    )  # fmt: skip
    return out


def act_dropout_gradient(gradient: Tensor, out: Tensor, factor: float) -> Tensor:
    """Returns `factor · gradient` where `out` is positive, otherwise 0."""
    # no kernel of ours: PyTorch's is as fast, and is compiled already
    return torch.ops.aten.threshold_backward(gradient, out, 0).mul_(factor)


def norm_act_dropout_gradient(
    gradient: Tensor, out: Tensor, x: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns the gradients of `x`, of the weight and of the bias of the batch norm.

    Rows that are not `real` have the gradient zero.
    """
    rows, size = _rows_and_number(real, x.size(0))
    columns, factor = norm.mean.numel(), np.float32(1.0 if seed is None else 1 / (1 - dropout))
    matrices = *(as_matrix(part, x.dtype) for part in (gradient, out, x)), rows
    mean, inverse = as_array(norm.mean), as_array(norm.inverse)
    d_bias, d_weight = _column_sums(_norm_gradient_sums, x, columns, *matrices, mean, inverse, factor).float()
    into = empty_padded(x.size(0), x.size(1), columns, x.dtype)
    run_parallel(
        _norm_gradient, row_cuts(x.size(0)), x.numel(), *matrices, mean, inverse, as_array(norm.scale),
        as_array(d_bias / size), as_array(d_weight / size), factor, as_output(into),
    )  # fmt: skip
    return into, d_weight, d_bias
