"""Accuracy, macro-F1 and cross-entropy on a GPU, in Triton: counts and sums of programs over rows, then of all."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.cross_entropy.triton_kernels import (
    PROGRAMS,
    programs_over,
    read_classes,
    read_rows,
    row_losses,
    tile_of,
    with_rows,
)
from legnn.ops.runtime.launch import fast_launch


@fast_launch
@triton.jit(do_not_specialize=["number", "classes", "stride", "tiles"])
def _count_rows(
    logits, y, nodes, losses, counts, number, classes, stride, tiles,
    NODES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    total = tl.zeros([ROWS], dtype=tl.float64)
    right = tl.zeros([BLOCK], dtype=tl.int32)
    either = tl.zeros([BLOCK], dtype=tl.int32)
    for tile in range(tiles):
        place = (program * tiles + tile) * ROWS + tl.arange(0, ROWS)
        inside = place < number
        row, away, predicted = read_rows(logits, nodes, place, inside, classes, stride, NODES, BLOCK)
        truth = read_classes(y, row, inside)
        total += tl.where(inside, row_losses(away, truth, BLOCK), 0.0).to(tl.float64)
        is_true = inside[:, None] & (column[None, :] == truth[:, None])
        is_predicted = inside[:, None] & (column[None, :] == predicted[:, None])
        right += tl.sum((is_true & is_predicted).to(tl.int32), 0)
        either += tl.sum(is_true.to(tl.int32) + is_predicted.to(tl.int32), 0)
    tl.store(losses + program, tl.sum(total, 0))
    to = counts + program * (2 * classes) + column
    tl.store(to, right, mask=column < classes)
    tl.store(to + classes, either, mask=column < classes)


@fast_launch
@triton.jit(do_not_specialize=["programs", "number", "classes"])
def _score(
    losses, counts, out, programs, number, classes,
    PROGRAMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    part = tl.arange(0, PROGRAMS)
    loss = tl.sum(tl.load(losses + part, mask=part < programs, other=0.0), 0)
    column = tl.arange(0, BLOCK)
    right = tl.zeros([ROWS, BLOCK], dtype=tl.int32)
    either = tl.zeros([ROWS, BLOCK], dtype=tl.int32)
    for start in range(0, programs, ROWS):
        program = start + tl.arange(0, ROWS)
        mask = (program < programs)[:, None] & (column < classes)[None, :]
        place = counts + program[:, None] * (2 * classes) + column[None, :]
        right += tl.load(place, mask=mask, other=0)
        either += tl.load(place + classes, mask=mask, other=0)
    right_of_class = tl.sum(right, 0)
    either_of_class = tl.sum(either, 0)
    f1 = (2 * right_of_class).to(tl.float64) / tl.maximum(either_of_class, 1)
    tl.store(out, tl.sum(right_of_class, 0).to(tl.float64) / number)
    tl.store(out + 1, tl.sum(f1, 0) / tl.sum((either_of_class > 0).to(tl.int32), 0))
    tl.store(out + 2, loss / number)


def launch(logits: Tensor, y: Tensor, nodes: Tensor | None) -> Tensor:
    """See `legnn.ops.validation.validation_metrics`."""
    logits, tile = with_rows(logits), tile_of(logits.size(1))
    number = logits.size(0) if nodes is None else nodes.numel()
    programs, tiles = programs_over(number, tile["ROWS"])
    losses = torch.empty(programs, dtype=torch.double, device=logits.device)
    counts = torch.empty(programs, 2, logits.size(1), dtype=torch.int32, device=logits.device)
    out = torch.empty(3, dtype=torch.double, device=logits.device)
    _count_rows[(programs,)](
        logits, y, nodes, losses, counts, number, logits.size(1), logits.stride(0), tiles,
        NODES=nodes is not None, **tile, num_warps=4,
    )  # fmt: skip
    _score[(1,)](losses, counts, out, programs, number, logits.size(1), PROGRAMS=PROGRAMS, **tile, num_warps=4)
    return out
