"""Labels as columns, in Triton."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch

ROWS = 64
"""Nodes of a program."""


@fast_launch
@triton.jit
def _write_one_hot(
    label_of, out, num_rows, FIRST: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < num_rows
    label = tl.load(label_of + row, mask=inside, other=-1)
    c = tl.arange(0, BLOCK)
    value = (label[:, None] == c[None, :]).to(tl.float32).to(out.dtype.element_ty)
    mask = inside[:, None] & (c < COLUMNS - FIRST)[None, :]
    tl.store(out + row[:, None] * COLUMNS + FIRST + c[None, :], value, mask=mask)


def write_one_hot(label_of: Tensor, out: Tensor, first: int) -> None:
    """Writes a one in column `first + label_of[i]` of row `i`, and zeros in the other columns from `first` on."""
    rows, columns = out.shape
    if rows:
        _write_one_hot[(triton.cdiv(rows, ROWS),)](
            label_of, out, rows, FIRST=first, COLUMNS=columns, ROWS=ROWS, BLOCK=triton.next_power_of_2(columns - first),
            num_warps=4,
        )  # fmt: skip
