"""Labels as columns, in Triton."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.norm_act_dropout.gpu import is_kept
from legnn.ops.norm_act_dropout.reference import drop_threshold
from legnn.ops.runtime.launch import fast_launch

ROWS, BLOCK = 8, 128
"""Nodes and features of a program."""


@fast_launch
@triton.jit
def _augment(
    x, label_of, seed, out, num_rows, least, factor,
    FEATURES: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    LABELS_BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < num_rows
    to_row = out + row[:, None] * STRIDE
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = inside[:, None] & (column < FEATURES)[None, :]
    value = tl.load(x + row[:, None] * FEATURES + column[None, :], mask=mask, other=0.0).to(tl.float32)
    value = tl.where(is_kept(seed, row[:, None], column[None, :], least), value * factor, 0.0)
    tl.store(to_row + column[None, :], value.to(out.dtype.element_ty), mask=mask)
    # by the same programs: written apart from the features, rows would be written twice
    if tl.program_id(1) == 0:
        c = tl.arange(0, LABELS_BLOCK)
        label = tl.load(label_of + row, mask=inside, other=-1)
        one_hot = (label[:, None] == c[None, :]).to(tl.float32)
        there = inside[:, None] & (c < COLUMNS - FEATURES)[None, :]
        tl.store(to_row + FEATURES + c[None, :], one_hot.to(out.dtype.element_ty), mask=there)


def write_augmented(x: Tensor, label_of: Tensor, dropout: float, seed: Tensor, out: Tensor) -> None:
    """Writes `dropout(x)` `[n, F]` to `out`, and beside it ones in columns `F + label_of[i]` of row `i`, else zeros."""
    (rows, features), columns = x.shape, out.size(1)
    if rows:
        _augment[(triton.cdiv(rows, ROWS), max(triton.cdiv(features, BLOCK), 1))](
            x, label_of, seed, out, rows, drop_threshold(dropout), 1 / (1 - dropout), FEATURES=features,
            COLUMNS=columns, STRIDE=out.stride(0), ROWS=ROWS, BLOCK=BLOCK,
            LABELS_BLOCK=triton.next_power_of_2(columns - features), num_warps=4,
        )  # fmt: skip
