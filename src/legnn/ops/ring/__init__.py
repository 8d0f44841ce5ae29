"""Rows of matrices that are written one after the other, after the last the first again."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from legnn.ops import select
from legnn.ops.ring import reference
from legnn.ops.ring.reference import RowCopy

WORD = 4
"""Bytes that a GPU copies at once: numbers of fewer are copied by PyTorch."""


class RowWriter:
    """Writes a row of several matrices, where a number on their device says; it can be captured.

    Args:
        copies: what is copied in every row: tensors and matrices that keep their addresses.
        values: `[rows, n]` the matrix of what is given in every row.
        row: `[1]` the row that is written next.
    """

    def __init__(self, copies: Sequence[RowCopy], values: Tensor, row: Tensor) -> None:
        self._copies, self._values, self._row = copies, values, row
        self._table: Tensor | None = None
        has_kernels = select.kernels_for_device(row.device) is select.TRITON
        sources = [source for copy in copies for source in copy.sources]
        if has_kernels and all(one.is_contiguous() and one.element_size() % WORD == 0 for one in sources):
            # Triton takes a moment to import
            from legnn.ops.ring.triton_kernels import copy_table

            self._table = copy_table(copies)

    def write(self, values: Tensor) -> None:
        """Writes the next row: `values` `[n]` and copies of all tensors."""
        if self._table is None:
            reference.write_row(self._copies, values, self._values, self._row)
        else:
            from legnn.ops.ring.triton_kernels import write_row

            write_row(self._table, values, self._values, self._row)
