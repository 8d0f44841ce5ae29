"""Residual, layer norm, activation and dropout of labels on a GPU, in Triton: one program a label."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.norm_act_dropout.gpu import is_kept
from legnn.ops.norm_act_dropout.reference import drop_threshold
from legnn.ops.runtime.launch import fast_launch


@fast_launch
@triton.jit
def _update(
    x, residual, weight, bias, seed, out, normed, inverse, eps, least, factor, x_stride, residual_stride,
    COLUMNS: tl.constexpr, RESIDUAL: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < COLUMNS
    value = tl.load(x + row * x_stride + column, mask=there, other=0.0).to(tl.float32)
    if RESIDUAL:
        value += tl.load(residual + row * residual_stride + column, mask=there, other=0.0).to(tl.float32)
    away = tl.where(there, value - tl.sum(value, 0) / COLUMNS, 0.0)
    spread = 1.0 / tl.sqrt(tl.sum(away * away, 0) / COLUMNS + eps)
    tl.store(inverse + row, spread)
    tl.store(normed + row * COLUMNS + column, away * spread, mask=there)
    gain = tl.load(weight + column, mask=there, other=0.0).to(tl.float32)
    value = tl.maximum(away * spread * gain + tl.load(bias + column, mask=there, other=0.0).to(tl.float32), 0.0)
    if DROP:
        value = tl.where(is_kept(seed, row, column, least), value * factor, 0.0)
    tl.store(out + row * COLUMNS + column, value.to(out.dtype.element_ty), mask=there)


@fast_launch
@triton.jit
def _gradient(
    gradient, out, normed, inverse, weight, d_x, d_residual, factor, x_columns, residual_columns,
    COLUMNS: tl.constexpr, RESIDUAL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDE)
    there = column < COLUMNS
    place = row * COLUMNS + column
    up = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
    passes = tl.load(out + place, mask=there, other=0.0).to(tl.float32) > 0
    up = tl.where(passes, up * factor, 0.0) * tl.load(weight + column, mask=there, other=0.0).to(tl.float32)
    value = tl.load(normed + place, mask=there, other=0.0)
    change = up - tl.sum(up, 0) / COLUMNS - value * (tl.sum(up * value, 0) / COLUMNS)
    # columns beyond are padding, whose gradient is zero
    change = tl.where(there, change * tl.load(inverse + row), 0.0)
    tl.store(d_x + row * x_columns + column, change.to(d_x.dtype.element_ty), mask=column < x_columns)
    if RESIDUAL:
        to = d_residual + row * residual_columns + column
        tl.store(to, change.to(d_residual.dtype.element_ty), mask=column < residual_columns)


@fast_launch
@triton.jit
def _norm_gradient(
    gradient, out, normed, d_weight, d_bias, rows, factor,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = column < COLUMNS
    sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    products = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & there[None, :]
        place = row[:, None] * COLUMNS + column[None, :]
        up = tl.load(gradient + place, mask=mask, other=0.0).to(tl.float32)
        passes = tl.load(out + place, mask=mask, other=0.0).to(tl.float32) > 0
        up = tl.where(passes, up * factor, 0.0)
        sums += up
        products += up * tl.load(normed + place, mask=mask, other=0.0)
    tl.store(d_bias + column, tl.sum(sums, 0), mask=there)
    tl.store(d_weight + column, tl.sum(products, 0), mask=there)


def update(
    x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, eps: float, dropout: float, seed: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns `dropout(relu(norm(x + residual)))`, what was normalized, in single precision, and `1 / deviation`."""
    rows, columns = x.size(0), weight.numel()
    out = x.new_empty(rows, columns)
    normed = torch.empty(rows, columns, dtype=torch.float32, device=x.device)
    inverse = torch.empty(rows, dtype=torch.float32, device=x.device)
    _update[(rows,)](
        x, residual, weight, bias, seed, out, normed, inverse, eps, drop_threshold(dropout), 1 / (1 - dropout),
        x.stride(0), 0 if residual is None else residual.stride(0), COLUMNS=columns, RESIDUAL=residual is not None,
        DROP=seed is not None, BLOCK=triton.next_power_of_2(columns), num_warps=4,
    )  # fmt: skip
    return out, normed, inverse


def gradient(
    up: Tensor, out: Tensor, normed: Tensor, inverse: Tensor, weight: Tensor, *, factor: float,
    shapes: tuple[tuple[int, int], tuple[int, int] | None],
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:  # fmt: skip
    """Returns the gradients of `x` and `residual`, whose shapes are given, and of weight and bias."""
    columns, (shape, residual_shape) = weight.numel(), shapes
    d_x = up.new_empty(shape)
    d_residual = None if residual_shape is None else up.new_empty(residual_shape)
    widest = max(shape[1], columns, 0 if residual_shape is None else residual_shape[1])
    _gradient[(shape[0],)](
        up, out, normed, inverse, weight, d_x, d_residual, factor, shape[1],
        0 if residual_shape is None else residual_shape[1], COLUMNS=columns, RESIDUAL=residual_shape is not None,
        WIDE=triton.next_power_of_2(widest), num_warps=4,
    )  # fmt: skip
    d_weight, d_bias = torch.empty_like(weight), torch.empty_like(weight)
    _norm_gradient[(triton.cdiv(columns, 64),)](
        up, out, normed, d_weight, d_bias, shape[0], factor, COLUMNS=columns, ROWS=8, BLOCK=64, num_warps=4
    )
    return d_x, d_residual, d_weight, d_bias
