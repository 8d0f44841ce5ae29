"""Rows of matrices that are written one after the other, on a GPU, in Triton: two launches, however many tensors."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.ring import WORD
from legnn.ops.ring.reference import RowCopy
from legnn.ops.runtime.launch import fast_launch

BLOCK = 2048
"""Words that a program copies."""


@fast_launch
@triton.jit
def _copy(table, row, BLOCK: tl.constexpr):
    entry = table + tl.program_id(0) * 4
    source = tl.load(entry).to(tl.pointer_type(tl.int32))
    into = tl.load(entry + 1).to(tl.pointer_type(tl.int32))
    stride = tl.load(entry + 2)
    word = tl.arange(0, BLOCK)
    inside = word < tl.load(entry + 3)
    tl.store(into + tl.load(row) * stride + word, tl.load(source + word, mask=inside), mask=inside)


@fast_launch
@triton.jit(do_not_specialize=["rows", "columns"])
def _write_and_advance(values, into, row, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    there = column < columns
    here = tl.load(row)
    tl.store(into + here * columns + column, tl.load(values + column, mask=there), mask=there)
    # every thread has read where it writes before one says where the next row is
    tl.debug_barrier()
    tl.store(row, (here + 1) % rows)


def copy_table(copies: Sequence[RowCopy]) -> Tensor:
    """Returns `[programs, 4]`: addresses of what each copies and of its place in the first row, stride, and length."""
    entries = []
    for sources, into in copies:
        to, stride = into.data_ptr(), into.stride(0) * into.element_size() // WORD
        for source in sources:
            for start in range(0, source.nbytes, BLOCK * WORD):
                length = min(source.nbytes - start, BLOCK * WORD)
                entries.append((source.data_ptr() + start, to + start, stride, length // WORD))
            to += source.nbytes
    return torch.tensor(entries, dtype=torch.long).reshape(-1, 4).to(copies[0].into.device)


def write_row(table: Tensor, values: Tensor, into: Tensor, row: Tensor) -> None:
    """See `reference.write_row`; `table` is that of the copies."""
    if table.size(0):
        _copy[(table.size(0),)](table, row, BLOCK=BLOCK, num_warps=4)
    _write_and_advance[(1,)](
        values, into, row, into.size(0), into.size(1), BLOCK=triton.next_power_of_2(into.size(1)), num_warps=1
    )
