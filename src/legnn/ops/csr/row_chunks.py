"""Long rows split into chunks, so that the programs of a GPU have about as much to do each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LONG_ROW = 64
"""A longer row is summed on a GPU in chunks of this many edges: all other programs would be done long before
the one that sums the edges of a node with a hundred thousand neighbors."""
LONG_SAMPLED_ROW = 256
"""The same in a sample, which is used once: chunks are not worth as much there."""


@dataclass(frozen=True, eq=False)
class RowChunks:
    """Rows of an adjacency split into chunks of edges, which are summed one by one and then added up in order."""

    rows: Tensor
    """`[L]` the rows."""
    pointer: Tensor
    """`[L + 1]` the position of each row's first chunk."""
    owner: Tensor
    """`[P]` the row of each chunk."""
    first: Tensor
    """`[P]` the first edge of each chunk."""
    last: Tensor
    """`[P]` one past its last edge; equal to `first` for a chunk that is not needed."""
    length: int
    """Edges of a chunk; all rows that are longer are here."""

    @classmethod
    def split(cls, rowptr: Tensor, rows: Tensor, length: int, max_chunks: int) -> RowChunks:
        """Splits `rows` into chunks of `length` edges, `max_chunks` at most. Does not synchronize."""
        begin, end = rowptr[rows], rowptr[rows + 1]
        pointer = torch.zeros(rows.numel() + 1, dtype=rowptr.dtype, device=rowptr.device)
        # a row without edges has a chunk, too: what a row has besides its edges is computed with its first chunk
        torch.cumsum(((end - begin + length - 1) // length).clamp(min=1), 0, dtype=rowptr.dtype, out=pointer[1:])
        chunk = torch.arange(max_chunks, dtype=rowptr.dtype, device=rowptr.device)
        of = (torch.searchsorted(pointer, chunk, right=True) - 1).clamp(max=rows.numel() - 1)
        first = torch.minimum(begin[of] + (chunk - pointer[of]) * length, end[of])
        last = torch.minimum(first + length, end[of])
        return cls(rows, pointer, rows[of], first, last, length)
