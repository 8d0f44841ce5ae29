"""Products of small matrices on a GPU, in Triton, whatever their strides and precision."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch

COLUMNS, INNER, WARPS, STAGES = 16, 128, 4, 3
"""Of a tile, and of the program that computes it."""
GRADIENT_ROWS, GRADIENT_COLUMNS, AT_ONCE = 32, 128, 8
"""Of a tile of a weight's gradient, and how many rows of labels it reads at once."""
FEWEST_ROWS = 16
"""Up to so many rows are summed without tensor cores."""


@fast_launch
@triton.jit
def _multiply(
    a, b, out,
    ROWS: tl.constexpr, INNER: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
    A_ROW: tl.constexpr, A_INNER: tl.constexpr, B_INNER: tl.constexpr, B_COLUMN: tl.constexpr,
    BF16: tl.constexpr, PRECISION: tl.constexpr,
    ROWS_TILE: tl.constexpr, COLUMNS_TILE: tl.constexpr, INNER_TILE: tl.constexpr,
):  # fmt: skip
    # sizes are constants: of 540 columns, four are read at once, of a number of them that is not known, one
    row = tl.program_id(0) * ROWS_TILE + tl.arange(0, ROWS_TILE)
    column = tl.program_id(1) * COLUMNS_TILE + tl.arange(0, COLUMNS_TILE)
    total = tl.zeros([ROWS_TILE, COLUMNS_TILE], dtype=tl.float32)
    for start in range(0, INNER, INNER_TILE):
        k = start + tl.arange(0, INNER_TILE)
        mask = (row < ROWS)[:, None] & (k < INNER)[None, :]
        left = tl.load(a + row[:, None] * A_ROW + k[None, :] * A_INNER, mask=mask, other=0.0)
        mask = (k < INNER)[:, None] & (column < COLUMNS)[None, :]
        right = tl.load(b + k[:, None] * B_INNER + column[None, :] * B_COLUMN, mask=mask, other=0.0)
        if BF16:
            # what bf16 can hold, TF32 can: the product is the same
            left, right = left.to(tl.bfloat16), right.to(tl.bfloat16)
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total, input_precision=PRECISION)
    mask = (row < ROWS)[:, None] & (column < WIDE)[None, :]
    tl.store(out + row[:, None] * WIDE + column[None, :], total.to(out.dtype.element_ty), mask=mask)


@fast_launch
@triton.jit
def _weight_gradient(
    a, b, out,
    COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    A_INNER: tl.constexpr, A_ROW: tl.constexpr, B_INNER: tl.constexpr, B_COLUMN: tl.constexpr,
    ROWS_TILE: tl.constexpr, COLUMNS_TILE: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    # a large matrix from few rows: it is written once, and what is summed is too little for tensor cores
    row = tl.program_id(0) * ROWS_TILE + tl.arange(0, ROWS_TILE)
    column = tl.program_id(1) * COLUMNS_TILE + tl.arange(0, COLUMNS_TILE)
    total = tl.zeros([ROWS_TILE, COLUMNS_TILE], dtype=tl.float32)
    for start in range(0, COUNT, AT_ONCE):
        for step in tl.static_range(AT_ONCE):
            k = start + step
            # of rows past the last one, nothing is read
            left = tl.load(a + k * A_INNER + row * A_ROW, mask=(row < ROWS) & (0 * row + k < COUNT), other=0.0)
            mask = (column < COLUMNS) & (0 * column + k < COUNT)
            right = tl.load(b + k * B_INNER + column * B_COLUMN, mask=mask, other=0.0)
            total += left.to(tl.float32)[:, None] * right.to(tl.float32)[None, :]
    mask = (row < ROWS)[:, None] & (column < COLUMNS)[None, :]
    tl.store(out + row[:, None] * COLUMNS + column[None, :], total.to(out.dtype.element_ty), mask=mask)


def multiply(a: Tensor, b: Tensor, like: Tensor, columns: int) -> Tensor:
    """See `ops.product.multiply`."""
    out = torch.empty(a.size(0), columns, dtype=like.dtype, device=a.device)
    bf16 = torch.bfloat16 in (a.dtype, like.dtype)
    precision = "tf32" if bf16 or torch.get_float32_matmul_precision() != "highest" else "ieee"
    # many small tiles: one of a hundred multiprocessors has one of them
    rows, inner = (max(triton.next_power_of_2(size), 16) for size in (a.size(0), b.size(0)))
    rows_tile, inner_tile = min(rows, 64), min(inner, INNER)
    _multiply[(triton.cdiv(a.size(0), rows_tile), triton.cdiv(columns, COLUMNS))](
        a, b, out, ROWS=a.size(0), INNER=b.size(0), COLUMNS=b.size(1), WIDE=columns,
        A_ROW=a.stride(0), A_INNER=a.stride(1), B_INNER=b.stride(0), B_COLUMN=b.stride(1),
        BF16=bf16, PRECISION=precision, ROWS_TILE=rows_tile, COLUMNS_TILE=COLUMNS, INNER_TILE=inner_tile,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out


def weight_gradient(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """See `ops.product.weight_gradient`."""
    rows, columns = like.shape
    if a.size(0) > FEWEST_ROWS:
        return multiply(a[:, :rows].T, b[:, :columns], like, columns)
    out = torch.empty_like(like, memory_format=torch.contiguous_format)
    _weight_gradient[(triton.cdiv(rows, GRADIENT_ROWS), triton.cdiv(columns, GRADIENT_COLUMNS))](
        a, b, out, COUNT=a.size(0), ROWS=rows, COLUMNS=columns,
        A_INNER=a.stride(0), A_ROW=a.stride(1), B_INNER=b.stride(0), B_COLUMN=b.stride(1),
        ROWS_TILE=GRADIENT_ROWS, COLUMNS_TILE=GRADIENT_COLUMNS, AT_ONCE=AT_ONCE, num_warps=4,
    )  # fmt: skip
    return out
