"""Tensors as the arrays that numba's kernels take, and the parts of a matrix that threads share."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

ROWS_PER_PART = 256
"""Rows of one part of a pass over a matrix; fixed, so that column sums do not depend on the number of threads."""

NO_VECTOR = np.empty(0, np.float32)
NO_MATRIX = np.empty((0, 0), np.float32)
"""Arguments for None: numba wants one type for each argument."""


def as_array(x: Tensor | None, missing: np.ndarray = NO_VECTOR) -> np.ndarray:
    """`x` as a contiguous float32 array, `missing` for None."""
    if x is None:
        return missing
    # the usual case, in half of the time
    is_plain = x.dtype is torch.float32 and x.is_contiguous()
    return x.detach().numpy() if is_plain else x.detach().float().contiguous().numpy()


def empty_padded(rows: int, width: int, columns: int) -> Tensor:
    """`[rows, width]` float32; the first `columns` are not initialized, the others are zero."""
    return torch.empty(rows, width) if width == columns else torch.zeros(rows, width)


def row_cuts(rows: int) -> list[int]:
    """The rows at which a matrix is cut into parts of `ROWS_PER_PART`."""
    return [*range(0, rows, ROWS_PER_PART), rows]
