"""A few numbers as one vector on a GPU, in Triton."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch
from legnn.ops.stack import MOST


@triton.jit
def _put(out, place, value, number, length):
    # a number of the host has no address
    if value is not None:
        number = tl.load(value)
    tl.store(out + place, number, mask=place < length)


@fast_launch
@triton.jit(do_not_specialize=["length"])
def _stack(out, a, b, c, d, e, f, g, h, a0, b0, c0, d0, e0, f0, g0, h0, length):
    _put(out, 0, a, a0, length)
    _put(out, 1, b, b0, length)
    _put(out, 2, c, c0, length)
    _put(out, 3, d, d0, length)
    _put(out, 4, e, e0, length)
    _put(out, 5, f, f0, length)
    _put(out, 6, g, g0, length)
    _put(out, 7, h, h0, length)


def launch(values: Sequence[Tensor | float], device: torch.device) -> Tensor:
    """See `legnn.ops.stack.stack_scalars`."""
    out = torch.empty(len(values), dtype=torch.double, device=device)
    rest = MOST - len(values)
    tensors = [value if isinstance(value, Tensor) else None for value in values]
    numbers = [0.0 if isinstance(value, Tensor) else float(value) for value in values]
    _stack[(1,)](out, *tensors, *[None] * rest, *numbers, *[0.0] * rest, len(values), num_warps=1)
    return out
