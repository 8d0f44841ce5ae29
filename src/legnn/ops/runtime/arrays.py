"""Tensors as the arrays that numba's kernels take, and the parts of a matrix that threads share."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

ROWS_PER_PART = 256
"""Rows of one part of a pass over a matrix; fixed, so that column sums do not depend on the number of threads."""

NO_VECTOR = np.empty(0, np.float32)
NO_MATRIX = np.empty((0, 0), np.float32)
NO_BITS = np.empty((0, 0), np.uint16)
"""Arguments for None: numba wants one type for each argument."""


def as_array(x: Tensor | None, missing: np.ndarray = NO_VECTOR) -> np.ndarray:
    """`x` as a contiguous float32 array, `missing` for None."""
    if x is None:
        return missing
    # the usual case, in half of the time
    is_plain = x.dtype is torch.float32 and x.is_contiguous()
    return x.detach().numpy() if is_plain else x.detach().float().contiguous().numpy()


def as_matrix(x: Tensor | None, dtype: torch.dtype) -> np.ndarray:
    """`x` `[n, D]` in `dtype`, float32 or bf16, as a contiguous array of numbers or their bits; an empty one for None.

    Kernels read bits by `jit.widen` and write them by `jit.narrow`: half of the memory, and no pass to convert it.
    """
    is_bf16 = dtype is torch.bfloat16
    if x is None:
        return NO_BITS if is_bf16 else NO_MATRIX
    x = x.detach()
    if x.dtype is not dtype:
        x = x.to(dtype)
    if not x.is_contiguous():
        x = x.contiguous()
    return x.view(torch.int16).numpy().view(np.uint16) if is_bf16 else x.numpy()


def as_output(x: Tensor) -> np.ndarray:
    """`x` `[n, D]`, float32 or bf16, as `as_matrix` gives it, to be written to: so `x` must be contiguous."""
    assert x.is_contiguous(), "a copy would be written to"
    return as_matrix(x, x.dtype)


def row_cuts(rows: int) -> list[int]:
    """The rows at which a matrix is cut into parts of `ROWS_PER_PART`."""
    return [*range(0, rows, ROWS_PER_PART), rows]
