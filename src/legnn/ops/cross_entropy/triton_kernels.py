"""The cross-entropy of some nodes on a GPU, in Triton: their rows, the sum over programs, and the gradient.

A program holds whole rows of logits. Sums are taken in a fixed order: no two programs add to one number.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch

TILE = 1024
"""Numbers that a program reads at once, or one row."""
PROGRAMS = 1024
"""Most programs over rows, whose sums one program adds up."""


@triton.jit
def read_rows(logits, nodes, place, inside, classes, stride, NODES: tl.constexpr, BLOCK: tl.constexpr):
    """Returns rows, their logits relative to the largest of a row, and their most probable classes."""
    row = place.to(tl.int64)
    if NODES:
        row = tl.load(nodes + place, mask=inside, other=0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = (column < classes)[None, :]
    x = tl.load(logits + row[:, None] * stride + column[None, :], mask=inside[:, None] & there, other=0.0)
    x = tl.where(there, x.to(tl.float32), float("-inf"))
    # as PyTorch's argmax: what is not a number is larger than any, and of equal ones the first is taken
    rank = tl.where(x != x, float("inf"), x)
    largest = tl.max(rank, 1)
    predicted = tl.min(tl.where(rank == largest[:, None], column[None, :], BLOCK), 1)
    return row, x - largest[:, None], predicted


@triton.jit
def read_classes(y, place, inside):
    """Returns the classes in some places."""
    return tl.load(y + place, mask=inside, other=0).to(tl.int32)


@triton.jit
def row_losses(away, truth, BLOCK: tl.constexpr):
    """Returns the cross-entropy of each row, from its logits relative to the largest."""
    own = tl.sum(tl.where(tl.arange(0, BLOCK)[None, :] == truth[:, None], away, 0.0), 1)
    return tl.log(tl.sum(tl.exp(away), 1)) - own


@triton.jit
def _classes_and_weights(y, weight, row, place, inside, WEIGHT: tl.constexpr, BY_PLACE: tl.constexpr):
    gain = tl.where(inside, 1.0, 0.0)
    if BY_PLACE:
        truth = read_classes(y, place, inside)
        gain = tl.load(weight + place, mask=inside, other=0.0).to(tl.float32)
    else:
        truth = read_classes(y, row, inside)
        if WEIGHT:
            gain = tl.load(weight + truth, mask=inside, other=0.0).to(tl.float32)
    return truth, gain


@fast_launch
@triton.jit(do_not_specialize=["number", "classes", "stride", "tiles"])
def _sum_losses(
    logits, y, nodes, weight, partial, number, classes, stride, tiles,
    NODES: tl.constexpr, WEIGHT: tl.constexpr, BY_PLACE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    losses = tl.zeros([ROWS], dtype=tl.float64)
    right = tl.zeros([ROWS], dtype=tl.float64)
    begin = tl.program_id(0) * tiles * ROWS
    for tile in range(tiles):
        place = begin + tile * ROWS + tl.arange(0, ROWS)
        inside = place < number
        row, away, predicted = read_rows(logits, nodes, place, inside, classes, stride, NODES, BLOCK)
        truth, gain = _classes_and_weights(y, weight, row, place, inside, WEIGHT, BY_PLACE)
        losses += tl.where(inside, gain * row_losses(away, truth, BLOCK), 0.0).to(tl.float64)
        right += (inside & (predicted == truth)).to(tl.float64)
    to = partial + tl.program_id(0) * 2
    tl.store(to, tl.sum(losses, 0))
    tl.store(to + 1, tl.sum(right, 0))


@fast_launch
@triton.jit(do_not_specialize=["programs", "number"])
def _add_up(partial, loss, numbers, programs, number, divisor, PROGRAMS: tl.constexpr):
    part = tl.arange(0, PROGRAMS)
    there = part < programs
    total = tl.sum(tl.load(partial + 2 * part, mask=there, other=0.0), 0)
    right = tl.sum(tl.load(partial + 2 * part + 1, mask=there, other=0.0), 0)
    tl.store(loss, (total / divisor).to(tl.float32))
    tl.store(numbers, total)
    tl.store(numbers + 1, right)
    tl.store(numbers + 2, right / number)


@fast_launch
@triton.jit(do_not_specialize=["number", "classes", "stride"])
def _gradient(
    up, logits, y, nodes, weight, into, number, classes, stride, divisor,
    NODES: tl.constexpr, WEIGHT: tl.constexpr, BY_PLACE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = place < number
    row, away, _ = read_rows(logits, nodes, place, inside, classes, stride, NODES, BLOCK)
    truth, gain = _classes_and_weights(y, weight, row, place, inside, WEIGHT, BY_PLACE)
    factor = gain * (tl.load(up).to(tl.float32) / divisor)
    column = tl.arange(0, BLOCK)[None, :]
    shares = tl.exp(away)
    change = shares / tl.sum(shares, 1)[:, None] - tl.where(column == truth[:, None], 1.0, 0.0)
    change = (change * factor[:, None]).to(into.dtype.element_ty)
    tl.store(into + row[:, None] * classes + column, change, mask=inside[:, None] & (column < classes))


def tile_of(classes: int) -> dict[str, int]:
    """Returns how many rows and columns a program holds at once."""
    block = triton.next_power_of_2(classes)
    return {"ROWS": max(TILE // block, 1), "BLOCK": block}


def programs_over(number: int, rows: int) -> tuple[int, int]:
    """Returns how many programs there are over `number` rows, and how many tiles of so many `rows` each has."""
    tiles = max(triton.cdiv(number, rows), 1)
    each = triton.cdiv(tiles, PROGRAMS)
    return triton.cdiv(tiles, each), each


def with_rows(logits: Tensor) -> Tensor:
    """Returns `logits`, whose columns lie side by side; rows may be apart."""
    return logits if logits.stride(1) == 1 else logits.contiguous()


def loss_and_numbers(
    logits: Tensor, y: Tensor, nodes: Tensor | None, divisor: float, weight: Tensor | None, *, by_place: bool
) -> tuple[Tensor, Tensor]:
    """Returns the loss and `[3]` its sum, the number of right predictions and their share."""
    logits, tile = with_rows(logits), tile_of(logits.size(1))
    number = logits.size(0) if nodes is None else nodes.numel()
    programs, tiles = programs_over(number, tile["ROWS"])
    partial = torch.empty(programs, 2, dtype=torch.double, device=logits.device)
    loss = torch.empty((), dtype=torch.float32, device=logits.device)
    numbers = torch.empty(3, dtype=torch.double, device=logits.device)
    _sum_losses[(programs,)](
        logits, y, nodes, weight, partial, number, logits.size(1), logits.stride(0), tiles,
        NODES=nodes is not None, WEIGHT=weight is not None, BY_PLACE=by_place, **tile, num_warps=4,
    )  # fmt: skip
    _add_up[(1,)](partial, loss, numbers, programs, number, divisor, PROGRAMS=PROGRAMS, num_warps=4)
    return loss, numbers


def gradient(
    up: Tensor, logits: Tensor, y: Tensor, nodes: Tensor | None, divisor: float, weight: Tensor | None, *,
    by_place: bool,
) -> Tensor:  # fmt: skip
    """Returns the gradient of the logits, `up` being that of the loss."""
    values, tile = with_rows(logits), tile_of(logits.size(1))
    shape, number = logits.shape, logits.size(0) if nodes is None else nodes.numel()
    into = logits.new_empty(shape) if nodes is None else logits.new_zeros(shape)
    if number:
        _gradient[(triton.cdiv(number, tile["ROWS"]),)](
            up, values, y, nodes, weight, into, number, shape[1], values.stride(0), divisor,
            NODES=nodes is not None, WEIGHT=weight is not None, BY_PLACE=by_place, **tile, num_warps=4,
        )  # fmt: skip
    return into
