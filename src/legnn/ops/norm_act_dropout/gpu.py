"""Batch norm, activation and dropout on a GPU, in Triton, in the fewest passes."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.norm_act_dropout.reference import drop_threshold
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.types import NormInputs

BLOCK = 128
"""Columns of a tile."""
TILE = 8
"""Rows of a tile in the passes over whole matrices."""
FEW_ROWS, MANY_ROWS, LARGE = 64, 512, 2**15
"""Rows over which one program takes column sums: few keep a GPU busy on a small graph, many are faster where there are
`LARGE` or more. Fixed numbers, so that the sums do not depend on the device."""


@triton.jit
def keeps_entry(seed, row, column, least):
    """Whether dropout keeps the number at `row` and `column`: a hash of both and the seed is `least` or more."""
    low = tl.load(seed).to(tl.uint32)
    high = tl.load(seed + 1).to(tl.uint32)
    key = mix(row.to(tl.uint32) ^ low) ^ high
    return mix(key + column.to(tl.uint32) * 0x9E3779B9) >= least.to(tl.uint32)


@triton.jit
def _scale_act_dropout(
    x, scale, shift, seed, out, num_rows, least, factor,
    COLUMNS: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr,
    DROP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < num_rows)[:, None] & (column < COLUMNS)[None, :]
    value = tl.load(x + row[:, None] * COLUMNS + column[None, :], mask=mask, other=0.0).to(tl.float32)
    if AFFINE:
        in_columns = column < COLUMNS
        value = value * tl.load(scale + column, mask=in_columns, other=0.0)[None, :]
        value += tl.load(shift + column, mask=in_columns, other=0.0)[None, :]
    if RELU:
        value = tl.maximum(value, 0.0)
    if DROP:
        value = tl.where(keeps_entry(seed, row[:, None], column[None, :], least), value * factor, 0.0)
    tl.store(out + row[:, None] * COLUMNS + column[None, :], value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _statistics(
    x, shift, partial, valid, num_rows, rows_of_program,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_columns = column < COLUMNS
    # squares are taken around the running mean, not around zero, where they would lose digits
    center = tl.load(shift + column, mask=in_columns, other=0.0)
    sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    squares = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    begin = tl.program_id(0).to(tl.int64) * rows_of_program
    for start in range(begin, tl.minimum(begin + rows_of_program, num_rows), ROWS):
        row = start + tl.arange(0, ROWS)
        inside = row < num_rows
        if PADDED:
            inside &= tl.load(valid + row, mask=inside, other=0) != 0
        mask = inside[:, None] & in_columns[None, :]
        value = tl.load(x + row[:, None] * COLUMNS + column[None, :], mask=mask, other=0.0).to(tl.float32)
        distance = tl.where(mask, value - center[None, :], 0.0)
        sums += distance
        squares += distance * distance
    to = partial + tl.program_id(0) * (2 * COLUMNS) + column
    tl.store(to, tl.sum(sums, 0), mask=in_columns)
    tl.store(to + COLUMNS, tl.sum(squares, 0), mask=in_columns)


@triton.jit
def _passing(up, value, row, column, in_columns, scale, shift, seed, least, factor, DROP: tl.constexpr):
    """The gradient `up` where the output is positive. That is computed again: reading it would take longer."""
    gain = tl.load(scale + column, mask=in_columns, other=0.0)
    passes = value * gain[None, :] + tl.load(shift + column, mask=in_columns, other=0.0)[None, :] > 0
    if DROP:
        passes = passes & keeps_entry(seed, row[:, None], column[None, :], least)
    return tl.where(passes, up * factor, 0.0)


@triton.jit
def _norm_gradient_sums(
    gradient, x, mean, inverse, scale, shift, seed, partial, num_rows, rows_of_program, least, factor,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_columns = column < COLUMNS
    center = tl.load(mean + column, mask=in_columns, other=0.0)
    spread = tl.load(inverse + column, mask=in_columns, other=0.0)
    sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    products = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    begin = tl.program_id(0).to(tl.int64) * rows_of_program
    for start in range(begin, tl.minimum(begin + rows_of_program, num_rows), ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < num_rows)[:, None] & in_columns[None, :]
        position = row[:, None] * COLUMNS + column[None, :]
        up = tl.load(gradient + position, mask=mask, other=0.0).to(tl.float32)
        value = tl.load(x + position, mask=mask, other=0.0).to(tl.float32)
        up = _passing(up, value, row, column, in_columns, scale, shift, seed, least, factor, DROP)
        sums += up
        products += up * (value - center[None, :]) * spread[None, :]
    to = partial + tl.program_id(0) * (2 * COLUMNS) + column
    tl.store(to, tl.sum(sums, 0), mask=in_columns)
    tl.store(to + COLUMNS, tl.sum(products, 0), mask=in_columns)


@triton.jit
def _norm_gradient(
    gradient, x, mean, inverse, scale, shift, seed, mean_gradient, mean_products, into, valid, num_rows, least, factor,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
    PADDED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_columns = column < COLUMNS
    mask = (row < num_rows)[:, None] & (column < COLUMNS)[None, :]
    position = row[:, None] * COLUMNS + column[None, :]
    center = tl.load(mean + column, mask=in_columns, other=0.0)
    spread = tl.load(inverse + column, mask=in_columns, other=0.0)
    gain = tl.load(scale + column, mask=in_columns, other=0.0)
    mean_up = tl.load(mean_gradient + column, mask=in_columns, other=0.0)
    mean_product = tl.load(mean_products + column, mask=in_columns, other=0.0)
    up = tl.load(gradient + position, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x + position, mask=mask, other=0.0).to(tl.float32)
    up = _passing(up, value, row, column, in_columns, scale, shift, seed, least, factor, DROP)
    value = (value - center[None, :]) * spread[None, :]
    change = gain[None, :] * (up - mean_up[None, :] - value * mean_product[None, :])
    if PADDED:
        is_valid = tl.load(valid + row, mask=row < num_rows, other=0) != 0
        change = tl.where(is_valid[:, None], change, 0.0)
    tl.store(into + position, change.to(into.dtype.element_ty), mask=mask)


def _tiles(x: Tensor) -> tuple[int, int]:
    return triton.cdiv(x.size(0), TILE), triton.cdiv(x.size(1), BLOCK)


def _programs(x: Tensor) -> tuple[int, int, Tensor]:
    """Rows of a program that sums columns, its blocks of columns, and where the programs write their two sums."""
    rows = FEW_ROWS if x.size(0) < LARGE else MANY_ROWS
    partial = torch.empty(triton.cdiv(x.size(0), rows), 2, x.size(1), dtype=torch.float32, device=x.device)
    return rows, triton.cdiv(x.size(1), BLOCK), partial


def statistics_sums(x: Tensor, center: Tensor, valid_mask: Tensor | None) -> Tensor:
    """As in `cpu`."""
    rows, blocks, partial = _programs(x)
    _statistics[(partial.size(0), blocks)](
        x, center, partial, valid_mask, x.size(0), rows,
        COLUMNS=x.size(1), ROWS=TILE, BLOCK=BLOCK, PADDED=valid_mask is not None, num_warps=4,
    )  # fmt: skip
    return partial.double().sum(0)


def scale_act_dropout(
    x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None, *, relu: bool
) -> Tensor:
    """As in `cpu`."""
    out = torch.empty_like(x)
    if x.numel():
        _scale_act_dropout[_tiles(x)](
            x, scale, shift, seed, out, x.size(0), drop_threshold(dropout), 1 / (1 - dropout),
            COLUMNS=x.size(1), AFFINE=scale is not None, RELU=relu, DROP=seed is not None, ROWS=TILE, BLOCK=BLOCK,
            num_warps=4,
        )  # fmt: skip
    return out


def gradient_sums(
    gradient: Tensor, out: Tensor, x: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
    valid_mask: Tensor | None,
) -> Tensor:  # fmt: skip
    """As in `cpu`; rows outside `valid_mask` have no gradient."""
    rows, blocks, partial = _programs(x)
    _norm_gradient_sums[(partial.size(0), blocks)](
        gradient, x, *norm, seed, partial, x.size(0), rows, drop_threshold(dropout), _factor(dropout, seed),
        COLUMNS=x.size(1), ROWS=TILE, BLOCK=BLOCK, DROP=seed is not None, num_warps=4,
    )  # fmt: skip
    return partial.double().sum(0)


def norm_gradient(
    gradient: Tensor, out: Tensor, x: Tensor, means: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
    valid_mask: Tensor | None,
) -> Tensor:  # fmt: skip
    """As in `cpu`."""
    into = torch.empty_like(gradient)
    _norm_gradient[_tiles(x)](
        gradient, x, *norm, seed, *means, into, valid_mask, x.size(0), drop_threshold(dropout), _factor(dropout, seed),
        COLUMNS=x.size(1), ROWS=TILE, BLOCK=BLOCK, DROP=seed is not None, PADDED=valid_mask is not None, num_warps=4,
    )  # fmt: skip
    return into


def _factor(dropout: float, seed: Tensor | None) -> float:
    return 1.0 if seed is None else 1 / (1 - dropout)
