"""Rows gathered by a GPU from pinned memory of the host, in Triton.

PyTorch's `index_select` wants both tensors on one device. The GPU reads pinned memory over the bus, as fast as a copy
if rows are longer than a hundred bytes, and only the rows that a batch needs.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 8
"""Rows of a program."""
BLOCK = 128
"""Numbers of a row that a program reads at once."""


@triton.jit
def _gather(values, rows, out, count, COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = place < count
    row = tl.load(rows + place, mask=inside, other=0).to(tl.int64)
    for start in range(0, COLUMNS, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (column < COLUMNS)[None, :]
        value = tl.load(values + row[:, None] * COLUMNS + column[None, :], mask=mask)
        tl.store(out + place[:, None] * COLUMNS + column[None, :], value, mask=mask)


def gather_from_host(values: Tensor, rows: Tensor) -> Tensor:
    """Returns the rows `[n, …]` of `values` `[M, …]`, contiguous and pinned, on the device of `rows` `[n]`."""
    out = torch.empty(rows.numel(), *values.shape[1:], dtype=values.dtype, device=rows.device)
    if out.numel():
        columns = out.numel() // rows.numel()
        _gather[(triton.cdiv(rows.numel(), ROWS),)](
            values, rows, out, rows.numel(), COLUMNS=columns, ROWS=ROWS, BLOCK=BLOCK, num_warps=4
        )
    return out
