"""Batch norm, activation and dropout on a GPU, in Triton, in the fewest passes."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from legnn.ops.norm_act_dropout.reference import drop_threshold, running_statistics
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.types import NormInputs

BLOCK = 128
"""Columns of a tile."""
TILE = 8
"""Rows of a tile in the passes over whole matrices."""
FEW_ROWS, MANY_ROWS, LARGE = 64, 512, 2**15
"""Rows over which one program takes column sums: few keep a GPU busy on a small graph, many are faster where there are
`LARGE` or more. Fixed numbers, so that the sums do not depend on the device."""
MERGED, MERGED_COLUMNS = 512, 16
"""Programs whose sums are added up at once, and columns of it in one program."""


def _rows_of_program(size: int) -> int:
    return FEW_ROWS if size < LARGE else MANY_ROWS


@triton.jit
def is_kept(seed, row, column, least):
    """Whether dropout keeps the number at `row` and `column`: a hash of both and the seed is `least` or more."""
    low = tl.load(seed).to(tl.uint32)
    high = tl.load(seed + 1).to(tl.uint32)
    key = mix(row.to(tl.uint32) ^ low) ^ high
    return mix(key + column.to(tl.uint32) * 0x9E3779B9) >= least.to(tl.uint32)


@triton.jit
def _scale_act_dropout(
    x, scale, shift, seed, out, num_rows, least, factor,
    COLUMNS: tl.constexpr, NORM: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr,
    DROP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # here and below, NORM is how many columns the norm has, and COLUMNS how many the matrix, the last of them zero
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < num_rows)[:, None] & (column < COLUMNS)[None, :]
    value = tl.load(x + row[:, None] * COLUMNS + column[None, :], mask=mask, other=0.0).to(tl.float32)
    if AFFINE:
        there = column < NORM
        value = value * tl.load(scale + column, mask=there, other=0.0)[None, :]
        value += tl.load(shift + column, mask=there, other=0.0)[None, :]
    if RELU:
        value = tl.maximum(value, 0.0)
    if DROP:
        value = tl.where(is_kept(seed, row[:, None], column[None, :], least), value * factor, 0.0)
    tl.store(out + row[:, None] * COLUMNS + column[None, :], value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _act_dropout_gradient(
    gradient, out, into, num_rows, factor, COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < num_rows)[:, None] & (column < COLUMNS)[None, :]
    place = row[:, None] * COLUMNS + column[None, :]
    up = tl.load(gradient + place, mask=mask, other=0.0).to(tl.float32)
    passes = tl.load(out + place, mask=mask, other=0.0).to(tl.float32) > 0
    tl.store(into + place, tl.where(passes, up * factor, 0.0).to(into.dtype.element_ty), mask=mask)


@triton.jit
def _statistics(
    x, shift, partial, real, num_rows, rows_of_program,
    COLUMNS: tl.constexpr, NORM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = column < NORM
    # squares are taken around the running mean, not around zero, where they would lose digits
    center = tl.load(shift + column, mask=there, other=0.0)
    sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    squares = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    begin = tl.program_id(0).to(tl.int64) * rows_of_program
    for start in range(begin, tl.minimum(begin + rows_of_program, num_rows), ROWS):
        row = start + tl.arange(0, ROWS)
        inside = row < num_rows
        if PADDED:
            inside &= tl.load(real + row, mask=inside, other=0) != 0
        mask = inside[:, None] & there[None, :]
        value = tl.load(x + row[:, None] * COLUMNS + column[None, :], mask=mask, other=0.0).to(tl.float32)
        away = tl.where(mask, value - center[None, :], 0.0)
        sums += away
        squares += away * away
    to = partial + tl.program_id(0) * (2 * NORM) + column
    tl.store(to, tl.sum(sums, 0), mask=there)
    tl.store(to + NORM, tl.sum(squares, 0), mask=there)


@triton.jit
def _gather_partials(partial, programs, column, NORM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    second = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(0, programs, ROWS):
        part = start + tl.arange(0, ROWS)
        mask = (part < programs)[:, None] & (column < NORM)[None, :]
        place = partial + part[:, None] * (2 * NORM) + column[None, :]
        first += tl.load(place, mask=mask, other=0.0)
        second += tl.load(place + NORM, mask=mask, other=0.0)
    return tl.sum(first, 0), tl.sum(second, 0)


@triton.jit
def _merge_statistics(
    partial, running_mean, running_var, weight, bias, mean, inverse, scale, shift, count, programs, num_rows, momentum,
    eps, NORM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = column < NORM
    if PADDED:
        num_rows = tl.load(count).to(tl.int32)
    sums, squares = _gather_partials(partial, programs, column, NORM, ROWS, BLOCK)
    old_mean = tl.load(running_mean + column, mask=there, other=0.0)
    old_var = tl.load(running_var + column, mask=there, other=0.0)
    away = sums / num_rows
    variance = tl.maximum(squares / num_rows - away * away, 0.0)
    new_mean = old_mean + away
    new_inverse = 1.0 / tl.sqrt(variance + eps)
    gain = tl.load(weight + column, mask=there, other=0.0) * new_inverse
    tl.store(mean + column, new_mean, mask=there)
    tl.store(inverse + column, new_inverse, mask=there)
    tl.store(scale + column, gain, mask=there)
    tl.store(shift + column, tl.load(bias + column, mask=there, other=0.0) - new_mean * gain, mask=there)
    unbiased = variance * (num_rows / tl.maximum(num_rows - 1.0, 1.0))
    tl.store(running_mean + column, old_mean + momentum * away, mask=there)
    tl.store(running_var + column, old_var + momentum * (unbiased - old_var), mask=there)


@triton.jit
def _passing(up, value, row, column, there, scale, shift, seed, least, factor, DROP: tl.constexpr):
    """The gradient `up` where the output is positive. That is computed again: reading it would take longer."""
    gain = tl.load(scale + column, mask=there, other=0.0)
    passes = value * gain[None, :] + tl.load(shift + column, mask=there, other=0.0)[None, :] > 0
    if DROP:
        passes = passes & is_kept(seed, row[:, None], column[None, :], least)
    return tl.where(passes, up * factor, 0.0)


@triton.jit
def _norm_gradient_sums(
    gradient, x, mean, inverse, scale, shift, seed, partial, num_rows, rows_of_program, least, factor,
    COLUMNS: tl.constexpr, NORM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = column < NORM
    center = tl.load(mean + column, mask=there, other=0.0)
    spread = tl.load(inverse + column, mask=there, other=0.0)
    sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    products = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    begin = tl.program_id(0).to(tl.int64) * rows_of_program
    for start in range(begin, tl.minimum(begin + rows_of_program, num_rows), ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < num_rows)[:, None] & there[None, :]
        place = row[:, None] * COLUMNS + column[None, :]
        up = tl.load(gradient + place, mask=mask, other=0.0).to(tl.float32)
        value = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
        up = _passing(up, value, row, column, there, scale, shift, seed, least, factor, DROP)
        sums += up
        products += up * (value - center[None, :]) * spread[None, :]
    to = partial + tl.program_id(0) * (2 * NORM) + column
    tl.store(to, tl.sum(sums, 0), mask=there)
    tl.store(to + NORM, tl.sum(products, 0), mask=there)


@triton.jit
def _merge_sums(partial, first, second, programs, NORM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = column < NORM
    one, two = _gather_partials(partial, programs, column, NORM, ROWS, BLOCK)
    tl.store(first + column, one, mask=there)
    tl.store(second + column, two, mask=there)


@triton.jit
def _norm_gradient(
    gradient, x, mean, inverse, scale, shift, seed, sums, products, into, real, count, num_rows, least, factor,
    COLUMNS: tl.constexpr, NORM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
    PADDED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = column < NORM
    mask = (row < num_rows)[:, None] & (column < COLUMNS)[None, :]
    place = row[:, None] * COLUMNS + column[None, :]
    center = tl.load(mean + column, mask=there, other=0.0)
    spread = tl.load(inverse + column, mask=there, other=0.0)
    gain = tl.load(scale + column, mask=there, other=0.0)
    counted = num_rows
    if PADDED:
        counted = tl.load(count).to(tl.int32)
    mean_up = tl.load(sums + column, mask=there, other=0.0) / counted
    mean_product = tl.load(products + column, mask=there, other=0.0) / counted
    up = tl.load(gradient + place, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
    up = _passing(up, value, row, column, there, scale, shift, seed, least, factor, DROP)
    value = (value - center[None, :]) * spread[None, :]
    change = gain[None, :] * (up - mean_up[None, :] - value * mean_product[None, :])
    if PADDED:
        is_real = tl.load(real + row, mask=row < num_rows, other=0) != 0
        change = tl.where(is_real[:, None], change, 0.0)
    tl.store(into + place, change.to(into.dtype.element_ty), mask=mask)


def _tiles(x: Tensor) -> tuple[int, int]:
    return triton.cdiv(x.size(0), TILE), triton.cdiv(x.size(1), BLOCK)


def batch_norm_statistics(x: Tensor, norm: nn.BatchNorm1d, real: Tensor | None) -> NormInputs:
    """As in `cpu`."""
    running_mean, running_var, momentum = running_statistics(norm)
    size, columns = x.size(0), running_mean.numel()
    each = _rows_of_program(size)
    programs, blocks = triton.cdiv(size, each), triton.cdiv(columns, BLOCK)
    count = None if real is None else real.sum()
    partial = torch.empty(programs, 2, columns, dtype=torch.float32, device=x.device)
    mean, inverse, scale, shift = running_mean.new_empty(4, columns)
    _statistics[(programs, blocks)](
        x, running_mean, partial, real, size, each,
        COLUMNS=x.size(1), NORM=columns, ROWS=TILE, BLOCK=BLOCK, PADDED=real is not None, num_warps=4,
    )  # fmt: skip
    _merge_statistics[(triton.cdiv(columns, MERGED_COLUMNS),)](
        partial, running_mean, running_var, norm.weight, norm.bias, mean, inverse, scale, shift, count, programs,
        size, momentum, norm.eps, NORM=columns, ROWS=MERGED, BLOCK=MERGED_COLUMNS, PADDED=real is not None,
        num_warps=8,
    )  # fmt: skip
    return NormInputs(mean, inverse, scale, shift)


def scale_act_dropout(
    x: Tensor, scale: Tensor | None, shift: Tensor | None, dropout: float, seed: Tensor | None, *, relu: bool
) -> Tensor:
    """As in `cpu`."""
    out = torch.empty_like(x)
    if x.numel():
        _scale_act_dropout[_tiles(x)](
            x, scale, shift, seed, out, x.size(0), drop_threshold(dropout), 1 / (1 - dropout),
            COLUMNS=x.size(1), NORM=0 if scale is None else scale.numel(),
            AFFINE=scale is not None, RELU=relu, DROP=seed is not None, ROWS=TILE, BLOCK=BLOCK, num_warps=4,
        )  # fmt: skip
    return out


def act_dropout_gradient(gradient: Tensor, out: Tensor, factor: float) -> Tensor:
    """As in `cpu`."""
    into = torch.empty_like(gradient)
    if into.numel():
        _act_dropout_gradient[_tiles(out)](
            gradient, out, into, out.size(0), factor, COLUMNS=out.size(1), ROWS=TILE, BLOCK=BLOCK, num_warps=4
        )
    return into


def norm_act_dropout_gradient(
    gradient: Tensor, out: Tensor, x: Tensor, norm: NormInputs, dropout: float, seed: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """As in `cpu`."""
    size, columns = x.size(0), norm.mean.numel()
    count = None if real is None else real.sum()
    each = _rows_of_program(size)
    programs, blocks = triton.cdiv(size, each), triton.cdiv(columns, BLOCK)
    partial = torch.empty(programs, 2, columns, dtype=torch.float32, device=x.device)
    d_weight, d_bias, into = torch.empty_like(norm.mean), torch.empty_like(norm.mean), torch.empty_like(gradient)
    sizes = {"COLUMNS": x.size(1), "NORM": columns, "ROWS": TILE, "BLOCK": BLOCK, "DROP": seed is not None}
    drops = drop_threshold(dropout), 1.0 if seed is None else 1 / (1 - dropout)
    given = norm.mean, norm.inverse, norm.scale, norm.shift, seed
    _norm_gradient_sums[(programs, blocks)](gradient, x, *given, partial, size, each, *drops, **sizes, num_warps=4)
    _merge_sums[(triton.cdiv(columns, MERGED_COLUMNS),)](
        partial, d_bias, d_weight, programs, NORM=columns, ROWS=MERGED, BLOCK=MERGED_COLUMNS, num_warps=8
    )
    _norm_gradient[_tiles(x)](
        gradient, x, *given, d_bias, d_weight, into, real, count, size, *drops, **sizes, PADDED=real is not None,
        num_warps=4,
    )  # fmt: skip
    return into, d_weight, d_bias
