"""Batch norm, activation and dropout on a CPU, in numba.

PyTorch's dropout draws every number on one thread; a hash of the position is many times faster.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from legnn.ops.norm_act_dropout.reference import drop_threshold
from legnn.ops.runtime.arrays import ROWS_PER_PART, as_array, as_matrix, as_output, row_cuts
from legnn.ops.runtime.hashing import GOLDEN
from legnn.ops.runtime.jit import kernel, mix, narrow, widen
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
def _statistics(begin, end, x, valid, shift, partial, rows):
    for part in range(begin, end):
        sums, squares = partial[part, 0], partial[part, 1]
        sums[:] = 0
        squares[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            if valid.size and not valid[i]:
                continue
            for c in range(shift.size):
                # squares are taken around the running mean, not around zero, where they would lose digits
                distance = widen(x[i, c]) - shift[c]
                sums[c] += distance
                squares[c] += distance * distance


@kernel
def _norm_gradient_sums(begin, end, gradient, out, x, valid, mean, inverse, factor, partial, rows):
    for part in range(begin, end):
        sums, products = partial[part, 0], partial[part, 1]
        sums[:] = 0
        products[:] = 0
        for i in range(part * rows, min((part + 1) * rows, x.shape[0])):
            if valid.size and not valid[i]:
                continue
            for c in range(mean.size):
                up = widen(gradient[i, c]) * factor if widen(out[i, c]) > 0 else np.float32(0)
                sums[c] += up
                products[c] += up * ((widen(x[i, c]) - mean[c]) * inverse[c])


@kernel
def _norm_gradient(begin, end, gradient, out, x, valid, mean, inverse, gain, mean_up, mean_product, factor, into):
    for i in range(begin, end):
        if valid.size and not valid[i]:
            into[i, :] = 0
            continue
        for c in range(mean.size):
            up = widen(gradient[i, c]) * factor if widen(out[i, c]) > 0 else np.float32(0)
            value = (widen(x[i, c]) - mean[c]) * inverse[c]
            into[i, c] = narrow(gain[c] * (up - mean_up[c] - value * mean_product[c]), into)


def _column_sums(sum_parts: Callable[..., None], x: Tensor, *arguments: Any) -> Tensor:
    """The two sums over the rows of `x` that `sum_parts` computes, `[2, D]` in double precision."""
    parts = -(-x.size(0) // ROWS_PER_PART)
    partial = torch.empty(parts, 2, x.size(1))
    run_parallel(sum_parts, range(parts + 1), x.numel(), *arguments, partial.numpy(), ROWS_PER_PART)
    return partial.double().sum(0)


def _rows(valid_mask: Tensor | None) -> np.ndarray:
    """The rows of nodes `[n]` bool, an empty array for all of them."""
    return NO_ROWS if valid_mask is None else valid_mask.numpy()


def _factor(dropout: float, seed: Tensor | None) -> np.float32:
    """The factor of entries that are not dropped."""
    return np.float32(1.0 if seed is None else 1 / (1 - dropout))


def statistics_sums(x: Tensor, center: Tensor, valid_mask: Tensor | None) -> Tensor:
    """Returns the sums of `x - center` and of its square over `valid_mask`, `[2, D]` in double precision."""
    return _column_sums(_statistics, x, as_matrix(x, x.dtype), _rows(valid_mask), as_array(center))


def scale_act_dropout(
    x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None, *, relu: bool
) -> Tensor:
    """Returns `dropout(relu(scale ∘ x + shift))`, without dropout if `seed` is None."""
    out = torch.empty(x.shape, dtype=x.dtype)
    low, high = (0, 0) if seed is None else seed.tolist()
    words = np.uint32(low), np.uint32(high), np.uint32(drop_threshold(dropout)), _factor(dropout, seed)
    run_parallel(
        _scale_act_dropout, row_cuts(x.size(0)), x.numel(), as_matrix(x, x.dtype), as_array(scale), as_array(shift),
        *words, relu, seed is not None, as_output(out),
    )  # fmt: skip
    return out


def gradient_sums(
    gradient: Tensor, out: Tensor, x: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
    valid_mask: Tensor | None,
) -> Tensor:  # fmt: skip
    """Returns the gradients of the bias and of the weight of the batch norm, `[2, D]` in double precision."""
    matrices = (as_matrix(part, x.dtype) for part in (gradient, out, x))
    return _column_sums(
        _norm_gradient_sums, x, *matrices, _rows(valid_mask), as_array(norm.mean), as_array(norm.inverse),
        _factor(dropout, seed),
    )  # fmt: skip


def norm_gradient(
    gradient: Tensor, out: Tensor, x: Tensor, means: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
    valid_mask: Tensor | None,
) -> Tensor:  # fmt: skip
    """Returns the gradient of `x`, zero outside `valid_mask`; `means` `[2, D]` are `gradient_sums` for each row."""
    into = torch.empty_like(x)
    matrices = (as_matrix(part, x.dtype) for part in (gradient, out, x))
    vectors = map(as_array, (norm.mean, norm.inverse, norm.scale, *means))
    run_parallel(
        _norm_gradient, row_cuts(x.size(0)), x.numel(), *matrices, _rows(valid_mask), *vectors, _factor(dropout, seed),
        as_output(into),
    )  # fmt: skip
    return into
