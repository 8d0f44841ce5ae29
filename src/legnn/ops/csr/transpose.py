"""The transpose of compressed rows by counting, on a CPU: one pass to count, one to put every edge in its place."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.runtime.jit import kernel
from legnn.ops.runtime.threads import run_parallel


@kernel
def _count(begin, end, cuts, col, counts):
    for part in range(begin, end):
        mine = counts[part]
        mine[:] = 0
        for e in range(cuts[part], cuts[part + 1]):
            mine[col[e]] += 1


@kernel
def _begin(counts, rowptr):
    """Where each row of the transpose begins; `counts` becomes where each part puts its first edge in a row."""
    at = 0
    for c in range(counts.shape[1]):
        rowptr[c] = at
        for part in range(counts.shape[0]):
            count = counts[part, c]
            counts[part, c] = at
            at += count
    rowptr[counts.shape[1]] = at


@kernel
def _put(begin, end, row_cuts, rowptr, col, counts, row, place):
    for part in range(begin, end):
        mine = counts[part]
        for i in range(row_cuts[part], row_cuts[part + 1]):
            for e in range(rowptr[i], rowptr[i + 1]):
                at = mine[col[e]]
                mine[col[e]] = at + 1
                row[at] = i
                place[e] = at


def turned(rowptr: Tensor, col: Tensor, num_cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of rows `rowptr` `[R + 1]`, `col` `[E]`: those of the transpose, `[num_cols + 1]` and `[E]`, ascending within a
    row, and the place `[E]` in it of each edge.

    Each part of the edges counts for itself: the same for any number of parts.
    """
    edges = col.numel()
    # counters are as many as columns for every part, so there must be many more edges than these
    parts = max(min(torch.get_num_threads(), edges // (4 * max(num_cols, 1))), 1)
    ends = rowptr.numpy()
    row_cuts = np.searchsorted(ends, np.arange(1, parts) * edges // parts)
    row_cuts = np.array([0, *row_cuts, ends.size - 1])
    kind = np.int32 if edges < 2**31 else np.int64
    counts = np.empty((parts, num_cols), kind)
    run_parallel(_count, range(parts + 1), edges, ends[row_cuts].astype(np.int64), col.numpy(), counts)
    turned_rowptr = torch.empty(num_cols + 1, dtype=torch.int64)
    _begin(counts, turned_rowptr.numpy())
    row, place = torch.empty_like(col), torch.from_numpy(np.empty(edges, kind))
    run_parallel(_put, range(parts + 1), edges, row_cuts, ends, col.numpy(), counts, row.numpy(), place.numpy())
    return turned_rowptr, row, place
