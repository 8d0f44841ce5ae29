"""How many pseudo labels are right, on a GPU, in Triton."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch

BLOCK = 1024


@fast_launch
@triton.jit(do_not_specialize=["number"])
def _count(y, chosen, truth, rows, known, right, number, SELECTED: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < number
    row = place.to(tl.int64)
    if SELECTED:
        row = tl.load(rows + place, mask=inside, other=0)
    real = tl.load(truth + row, mask=inside, other=-1)
    is_known = (tl.load(chosen + place, mask=inside, other=0) != 0) & (real >= 0)
    is_right = is_known & (tl.load(y + place, mask=inside, other=0) == real)
    # sums of integers are exact in any order
    tl.atomic_add(known, tl.sum(is_known.to(tl.int64), 0))
    tl.atomic_add(right, tl.sum(is_right.to(tl.int64), 0))


def launch(y: Tensor, chosen: Tensor, truth: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """See `legnn.ops.pseudo_labels.count_known_and_right`."""
    known, right = torch.zeros(2, dtype=torch.long, device=y.device).unbind()
    if y.numel():
        _count[(triton.cdiv(y.numel(), BLOCK),)](
            y, chosen, truth, rows, known, right, y.numel(), SELECTED=rows is not None, BLOCK=BLOCK, num_warps=4
        )
    return known, right
