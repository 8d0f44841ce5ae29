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

from legnn.ops.gather import FeatureCache

ROWS = 8
"""Rows of a program."""
BLOCK = 128
"""Numbers of a row that a program reads at once."""


# threads read the rows of batches of different sizes at the same time: none is to compile it anew
@triton.jit(do_not_specialize=["count"])
def _gather(
    values, hot, position, rows, out, count,
    COLUMNS: tl.constexpr, HOT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    to = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = to < count
    row = tl.load(rows + to, mask=inside, other=0).to(tl.int64)
    on_host = inside
    if HOT:
        hot_row = tl.load(position + row, mask=inside, other=-1).to(tl.int64)
        is_hot = hot_row >= 0
        on_host = inside & (hot_row < 0)
    for start in range(0, COLUMNS, BLOCK):
        column = start + tl.arange(0, BLOCK)
        in_row = (column < COLUMNS)[None, :]
        value = tl.load(values + row[:, None] * COLUMNS + column[None, :], mask=on_host[:, None] & in_row, other=0)
        if HOT:
            near = is_hot[:, None] & in_row
            value = tl.where(near, tl.load(hot + hot_row[:, None] * COLUMNS + column[None, :], mask=near), value)
        tl.store(out + to[:, None] * COLUMNS + column[None, :], value, mask=inside[:, None] & in_row)


def gather_rows(values: Tensor, rows: Tensor, device: torch.device, hot: FeatureCache | None) -> Tensor:
    """Returns the rows of `values`, in whose memory they are: of the GPU, pinned, or of the host."""
    on_device = rows.to(device)
    if values.device == on_device.device:
        return values.index_select(0, on_device)
    if values.is_contiguous() and values.is_pinned():
        return gather_from_host(values, on_device, hot)
    return values.index_select(0, rows.to(values.device)).pin_memory().to(device, non_blocking=True)


def gather_from_host(values: Tensor, rows: Tensor, hot: FeatureCache | None) -> Tensor:
    """Returns the rows of `values`, contiguous and pinned, on the device of `rows`; `hot` ones are read there."""
    out = torch.empty(rows.numel(), *values.shape[1:], dtype=values.dtype, device=rows.device)
    if out.numel():
        near, position = hot or (None, None)
        _gather[(triton.cdiv(rows.numel(), ROWS),)](
            values, near, position, rows, out, rows.numel(),
            COLUMNS=out.numel() // rows.numel(), HOT=hot is not None, ROWS=ROWS, BLOCK=BLOCK, num_warps=4,
        )  # fmt: skip
    return out
