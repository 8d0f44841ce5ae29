"""Factors of label edges in Triton: one small kernel in the place of ten."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch

BLOCK = 256


@triton.jit
def _power(number, EXPONENT: tl.constexpr):
    if EXPONENT == -1:
        number = 1.0 / number
    elif EXPONENT == -0.5:
        number = 1.0 / tl.sqrt(number)
    elif EXPONENT == 0.5:
        number = tl.sqrt(number)
    else:
        number = number * 0.0 + 1.0
    return number


@fast_launch
@triton.jit
def _label_factors(
    label_of, count_minus_one, hidden_first, hidden_second, shown_first, shown_second, first, second, from_label,
    to_label, num_nodes, SOURCE: tl.constexpr, TARGET: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = node < num_nodes
    y = tl.load(label_of + node, mask=inside, other=-1)
    shows = y >= 0
    count = tl.load(count_minus_one + y, mask=shows, other=0) + 1
    one = tl.where(shows, tl.load(shown_first + node, mask=inside), tl.load(hidden_first + node, mask=inside))
    other = tl.where(shows, tl.load(shown_second + node, mask=inside), tl.load(hidden_second + node, mask=inside))
    count = count.to(one.dtype)
    tl.store(first + node, one, mask=inside)
    tl.store(second + node, other, mask=inside)
    tl.store(from_label + node, one * _power(count, SOURCE), mask=inside)
    tl.store(to_label + node, _power(count, TARGET), mask=inside)


def launch(
    label_of: Tensor, count_minus_one: Tensor, hidden_first: Tensor, hidden_second: Tensor, shown_first: Tensor,
    shown_second: Tensor, source: float, target: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns the two numbers of each node, and its factors of messages from and to its label, `[n]` each."""
    number = label_of.numel()
    out = torch.empty(4, number, dtype=hidden_first.dtype, device=label_of.device)
    first, second, from_label, to_label = out.unbind()
    _label_factors[(triton.cdiv(number, BLOCK),)](
        label_of, count_minus_one, hidden_first, hidden_second, shown_first, shown_second, first, second, from_label,
        to_label, number, SOURCE=source, TARGET=target, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return first, second, from_label, to_label
