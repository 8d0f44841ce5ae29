"""A product of small matrices on a GPU, in Triton, whatever their strides and precision."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS, INNER = 16, 128
"""Of a tile."""


@triton.jit
def _multiply(
    a, b, out, rows, inner, columns, wide,
    A_ROW: tl.constexpr, A_INNER: tl.constexpr, B_INNER: tl.constexpr, B_COLUMN: tl.constexpr,
    BF16: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for start in range(0, inner, INNER):
        k = start + tl.arange(0, INNER)
        mask = (row < rows)[:, None] & (k < inner)[None, :]
        left = tl.load(a + row[:, None] * A_ROW + k[None, :] * A_INNER, mask=mask, other=0.0)
        mask = (k < inner)[:, None] & (column < columns)[None, :]
        right = tl.load(b + k[:, None] * B_INNER + column[None, :] * B_COLUMN, mask=mask, other=0.0)
        if BF16:
            # what bf16 can hold, TF32 can: the product is the same
            left, right = left.to(tl.bfloat16), right.to(tl.bfloat16)
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total, input_precision=PRECISION)
    mask = (row < rows)[:, None] & (column < wide)[None, :]
    tl.store(out + row[:, None] * wide + column[None, :], total.to(out.dtype.element_ty), mask=mask)


def multiply(a: Tensor, b: Tensor, like: Tensor, columns: int) -> Tensor:
    """See `ops.product.multiply`."""
    out = torch.empty(a.size(0), columns, dtype=like.dtype, device=a.device)
    bf16 = torch.bfloat16 in (a.dtype, like.dtype)
    precision = "tf32" if bf16 or torch.get_float32_matmul_precision() != "highest" else "ieee"
    # many small tiles: one of a hundred multiprocessors has one of them
    rows, inner = (max(triton.next_power_of_2(size), 16) for size in (a.size(0), b.size(0)))
    tile = {"ROWS": min(rows, 64), "COLUMNS": COLUMNS, "INNER": min(inner, INNER)}
    _multiply[(triton.cdiv(a.size(0), tile["ROWS"]), triton.cdiv(columns, tile["COLUMNS"]))](
        a, b, out, a.size(0), b.size(0), b.size(1), columns,
        A_ROW=a.stride(0), A_INNER=a.stride(1), B_INNER=b.stride(0), B_COLUMN=b.stride(1),
        BF16=bf16, PRECISION=precision, **tile, num_warps=4,
    )  # fmt: skip
    return out
