"""A step of Adam in Triton: one launch for all parameters, groups with other weight decays included.

PyTorch gives 65,536 numbers to one block of threads, so that most of a GPU is idle while a small model is updated.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import math
from collections.abc import Sequence
from itertools import accumulate

import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.adam import SLOTS, AdamTensors
from legnn.ops.runtime.launch import fast_launch

BLOCK = 1024
"""Numbers that a program updates."""
NEVER = 2**30 - 4
"""First program of a slot that has no parameter."""


@triton.jit
def _from_odd(number):
    return (number - 3) >> 1


@triton.jit
def _pointer(address):
    return (_from_odd(address) * 4).to(tl.pointer_type(tl.float32))


@fast_launch
@triton.jit
def _adam(
    parameters, gradients, exp_avgs, exp_avg_sqs, steps, decays, sizes, starts, readers, lr,
    BETA1: tl.constexpr, BETA2: tl.constexpr, LOG_BETA1: tl.constexpr, LOG_BETA2: tl.constexpr, EPS: tl.constexpr,
    SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # the parameter of this program is the last that starts with it or before
    program = tl.program_id(0)
    slot = tl.full((), 0, tl.int32)
    parameter, gradient, exp_avg, exp_avg_sq = parameters[0], gradients[0], exp_avgs[0], exp_avg_sqs[0]
    step, decay, size, start = steps[0], decays[0], sizes[0].to(tl.int64), starts[0]
    # without the branch, compiled code compares again for each number that it selects, and is half as long again
    if 2 * program + 3 >= starts[1]:
        for i in tl.static_range(1, SLOTS):
            started = 2 * program + 3 >= starts[i]
            slot = tl.where(started, i, slot)
            parameter = tl.where(started, parameters[i], parameter)
            gradient = tl.where(started, gradients[i], gradient)
            exp_avg = tl.where(started, exp_avgs[i], exp_avg)
            exp_avg_sq = tl.where(started, exp_avg_sqs[i], exp_avg_sq)
            step = tl.where(started, steps[i], step)
            decay = tl.where(started, decays[i], decay)
            size = tl.where(started, sizes[i].to(tl.int64), size)
            start = tl.where(started, starts[i], start)
    size = _from_odd(size)
    place = (program - _from_odd(start)).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size

    parameter = _pointer(parameter) + place
    gradient = _pointer(gradient) + place
    exp_avg = _pointer(exp_avg) + place
    exp_avg_sq = _pointer(exp_avg_sq) + place
    p = tl.load(parameter, mask=inside)
    g = tl.load(gradient, mask=inside)
    m = tl.load(exp_avg, mask=inside)
    v = tl.load(exp_avg_sq, mask=inside)

    # all programs of a parameter read its step; the last of them to have done so counts it
    step = _pointer(step)
    t = tl.load(step) + 1
    tl.debug_barrier()
    if tl.atomic_add(readers + slot, 1) == tl.cdiv(size, BLOCK) - 1:
        tl.store(step, t)
        tl.store(readers + slot, 0)

    # in double precision: in the first steps, 1 - β2^t is the small difference of two large numbers
    correction1 = (1 - tl.exp(t.to(tl.float64) * LOG_BETA1)).to(tl.float32)
    correction2 = (1 - tl.exp(t.to(tl.float64) * LOG_BETA2)).to(tl.float32)
    step_size = tl.load(lr) / correction1
    inverse_root = 1 / tl.sqrt(correction2)

    g += decay * p
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    p -= step_size * m / (tl.sqrt(v) * inverse_root + EPS)
    tl.store(parameter, p, mask=inside)
    tl.store(exp_avg, m, mask=inside)
    tl.store(exp_avg_sq, v, mask=inside)


def launch(tensors: Sequence[AdamTensors], lr: Tensor, betas: tuple[float, float], eps: float, readers: Tensor) -> None:
    """See `ops.adam.adam_step`."""
    # one without numbers has no address, and nothing to update
    tensors = [one for one in tensors if one.parameter.numel()]
    for first in range(0, len(tensors), SLOTS):
        some = tensors[first : first + SLOTS]
        free = SLOTS - len(some)
        sizes = [one.parameter.numel() for one in some]
        *starts, programs = accumulate((triton.cdiv(size, BLOCK) for size in sizes), initial=0)
        *addressed, decays = zip(*some, strict=True)
        # of numbers of four bytes
        addresses = [[tensor.data_ptr() // 4 for tensor in column] for column in addressed]
        _adam[(programs,)](
            *(_odd(column + column[:1] * free) for column in addresses), (*map(float, decays), *[0.0] * free),
            _odd(sizes + [0] * free), _odd(starts + [NEVER] * free), readers, lr,
            BETA1=betas[0], BETA2=betas[1], LOG_BETA1=math.log(betas[0]), LOG_BETA2=math.log(betas[1]), EPS=eps,
            SLOTS=SLOTS, BLOCK=BLOCK, num_warps=4,
        )  # fmt: skip


def _odd(numbers: list[int]) -> tuple[int, ...]:
    """Odd numbers for some, which `_from_odd` turns back.

    Triton compiles a kernel anew for every number in a tuple that becomes 1 or a multiple of 16, or no longer is one.
    """
    return tuple(2 * number + 3 for number in numbers)
