"""The transpose of a CSR matrix on a CPU, by counting sort on several threads."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.runtime.jit import kernel
from legnn.ops.runtime.threads import run_parallel


@kernel
def _count(begin, end, edge_cuts, col, counts):
    for part in range(begin, end):
        mine = counts[part]
        mine[:] = 0
        for e in range(edge_cuts[part], edge_cuts[part + 1]):
            mine[col[e]] += 1


@kernel
def _counts_to_positions(counts, rowptr):
    """Writes the row pointers of the transpose; `counts` becomes the position of each part's first edge in a row."""
    at = 0
    for c in range(counts.shape[1]):
        rowptr[c] = at
        for part in range(counts.shape[0]):
            count = counts[part, c]
            counts[part, c] = at
            at += count
    rowptr[counts.shape[1]] = at


@kernel
def _fill(begin, end, row_cuts, rowptr, col, positions, row, position):
    for part in range(begin, end):
        mine = positions[part]
        for i in range(row_cuts[part], row_cuts[part + 1]):
            for e in range(rowptr[i], rowptr[i + 1]):
                at = mine[col[e]]
                mine[col[e]] = at + 1
                row[at] = i
                position[e] = at


def transpose_csr(rowptr: Tensor, col: Tensor, num_cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the row pointers and columns of the transpose, and the position of each edge in it.

    Each part of the rows has counters of its own, so that the result does not depend on the number of threads.

    Shapes:
        `rowptr` `[R + 1]`, `col` `[E]` → `[num_cols + 1]`, `[E]` ascending within a row, `[E]`
    """
    edges = col.numel()
    # a part has as many counters as there are columns: too many unless it has several times as many edges
    parts = max(min(torch.get_num_threads(), edges // (4 * max(num_cols, 1))), 1)
    ends = rowptr.numpy()
    row_cuts = np.searchsorted(ends, np.arange(1, parts) * edges // parts)
    row_cuts = np.array([0, *row_cuts, ends.size - 1])
    dtype = np.int32 if edges < 2**31 else np.int64
    counts = np.empty((parts, num_cols), dtype)
    run_parallel(_count, range(parts + 1), edges, ends[row_cuts].astype(np.int64), col.numpy(), counts)
    new_rowptr = torch.empty(num_cols + 1, dtype=torch.int64)
    _counts_to_positions(counts, new_rowptr.numpy())
    row, position = torch.empty_like(col), torch.from_numpy(np.empty(edges, dtype))
    run_parallel(_fill, range(parts + 1), edges, row_cuts, ends, col.numpy(), counts, row.numpy(), position.numpy())
    return new_rowptr, row, position
