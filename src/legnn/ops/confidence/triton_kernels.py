"""The most probable class on a GPU, in Triton."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.cross_entropy.triton_kernels import read_rows, tile_of, with_rows
from legnn.ops.runtime.launch import fast_launch


@fast_launch
@triton.jit(do_not_specialize=["number", "classes", "stride"])
def _most_probable(
    logits, rows, p, y, number, classes, stride, SELECTED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = place < number
    _, away, predicted = read_rows(logits, rows, place, inside, classes, stride, SELECTED, BLOCK)
    # the largest logit is zero away from itself
    tl.store(p + place, 1.0 / tl.sum(tl.exp(away), 1), mask=inside)
    tl.store(y + place, predicted.to(tl.int64), mask=inside)


def launch(logits: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """See `legnn.ops.confidence.most_probable`."""
    logits, tile = with_rows(logits), tile_of(logits.size(1))
    number = logits.size(0) if rows is None else rows.numel()
    p = torch.empty(number, dtype=torch.float32, device=logits.device)
    y = torch.empty(number, dtype=torch.long, device=logits.device)
    if number:
        _most_probable[(triton.cdiv(number, tile["ROWS"]),)](
            logits, rows, p, y, number, logits.size(1), logits.stride(0), SELECTED=rows is not None, **tile, num_warps=4
        )
    return p, y
