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

from legnn.ops.gather import HotRows
from legnn.ops.runtime.launch import fast_launch

ROWS = 8
"""Rows of a program."""
BLOCK = 128
"""Numbers of a row that a program reads at once."""


# threads read the rows of batches of different sizes at the same time: none is to compile it anew
@fast_launch
@triton.jit(do_not_specialize=["count"])
def _gather(
    values, hot, place, rows, out, count,
    COLUMNS: tl.constexpr, HOT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    to = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = to < count
    row = tl.load(rows + to, mask=inside, other=0).to(tl.int64)
    on_host = inside
    if HOT:
        hot_row = tl.load(place + row, mask=inside, other=-1).to(tl.int64)
        is_hot = hot_row >= 0
        on_host = inside & (hot_row < 0)
    for start in range(0, COLUMNS, BLOCK):
        column = start + tl.arange(0, BLOCK)
        there = (column < COLUMNS)[None, :]
        value = tl.load(values + row[:, None] * COLUMNS + column[None, :], mask=on_host[:, None] & there, other=0)
        if HOT:
            near = is_hot[:, None] & there
            value = tl.where(near, tl.load(hot + hot_row[:, None] * COLUMNS + column[None, :], mask=near), value)
        tl.store(out + to[:, None] * COLUMNS + column[None, :], value, mask=inside[:, None] & there)


def gather_from_host(values: Tensor, rows: Tensor, hot: HotRows | None) -> Tensor:
    """See `GatherKernels`."""
    out = torch.empty(rows.numel(), *values.shape[1:], dtype=values.dtype, device=rows.device)
    if out.numel():
        near, place = hot or (None, None)
        _gather[(triton.cdiv(rows.numel(), ROWS),)](
            values, near, place, rows, out, rows.numel(),
            COLUMNS=out.numel() // rows.numel(), HOT=hot is not None, ROWS=ROWS, BLOCK=BLOCK, num_warps=4,
        )  # fmt: skip
    return out
