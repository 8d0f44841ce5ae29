"""Rows of edges in plain PyTorch, by stable sorts. Nothing synchronizes."""

from __future__ import annotations

import torch
from torch import Tensor

Rows = tuple[Tensor, Tensor, Tensor | None]
"""Row pointers `[rows + 1]`, columns `[edges]` and weights `[edges]` or None."""


def sort_edges(row: Tensor, col: Tensor, weight: Tensor | None, num_nodes: int) -> Rows:
    """Returns the edges by row, ascending by column within a row; parallel edges keep their order."""
    order = torch.argsort(row * num_nodes + col, stable=True)
    return row_pointers(row[order], num_nodes), col[order], None if weight is None else weight[order]


def transpose(rowptr: Tensor, col: Tensor, num_cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns row pointers and columns of the transpose, and the position in `col` of each of its edges.

    Padding edges, whose column is `num_cols`, come after the last row.
    """
    # rows ascend, so that a stable sort by column alone leaves them ascending within a column
    row = row_of_edges(rowptr, col.numel())
    col, order = col.sort(stable=True)
    return row_pointers(col, num_cols), row[order], order


def row_pointers(row: Tensor, num_rows: int) -> Tensor:
    """`[rows + 1]` the position of each row's first edge, for edges that ascend by row."""
    # a binary search for each row, not `bincount`, which synchronizes
    return torch.searchsorted(row, torch.arange(num_rows + 1, device=row.device, dtype=row.dtype))


def row_of_edges(rowptr: Tensor, num_edges: int) -> Tensor:
    """`[edges]` the row of each edge; the number of rows for padding edges."""
    ends = torch.cat([rowptr[1:], rowptr.new_full((1,), num_edges)])
    return torch.repeat_interleave(ends - rowptr, output_size=num_edges)
