"""From tensors to what numba's kernels take, and how matrices are cut for threads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.types import LabelMessage

ROWS = 256
"""Rows over which one part of a pass over a matrix goes; a fixed number, so that column sums do not depend on the
number of threads."""

NOTHING = np.empty(0, np.float32)
NO_MATRIX = np.empty((0, 0), np.float32)
NO_CLASSES = np.empty(0, np.int32)
"""Arguments that are not given: numba wants one type for each."""


def array(x: Tensor | None, nothing: np.ndarray = NOTHING) -> np.ndarray:
    """`x` as a contiguous array in single precision, an empty one for None."""
    return nothing if x is None else x.detach().float().contiguous().numpy()


def label_arrays(label: LabelMessage | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What labels add; empty arrays where they add nothing."""
    if label is None:
        return NO_CLASSES, NO_MATRIX, NOTHING
    return label.label_of.numpy(), array(label.rows), array(label.scale)


def edge_arrays(adjacency: Adjacency) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compressed rows and weights."""
    return adjacency.rowptr.numpy(), adjacency.col.numpy(), array(adjacency.weight)


def blank(rows: int, width: int, columns: int) -> Tensor:
    """`[rows, width]`, of which the first `columns` will be written and the others are zero."""
    return torch.empty(rows, width) if width == columns else torch.zeros(rows, width)


def cuts_of(rows: int) -> list[int]:
    """Where the rows of a matrix are cut."""
    return [*range(0, rows, ROWS), rows]
