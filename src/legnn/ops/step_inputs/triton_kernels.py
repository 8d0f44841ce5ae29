"""The inputs of a step in Triton, see `reference`."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime import hashing
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.runtime.launch import fast_launch

GOLDEN = tl.constexpr(hashing.GOLDEN)


@triton.jit
def _write_keys(low, high, step, keys, first, WORDS: tl.constexpr):
    place = tl.arange(0, WORDS)
    row = (first + place // 2).to(tl.uint32)
    column = (place % 2).to(tl.uint32)
    step = step.to(tl.uint32)
    word = mix(row ^ mix(mix(step) ^ low.to(tl.uint32))) ^ mix(high.to(tl.uint32) + step * GOLDEN)
    tl.store(keys + place, mix(word + column * GOLDEN).to(tl.int64))


@fast_launch
@triton.jit
def _begin_step(state, keys, rows, first_number, second_number, WORDS: tl.constexpr, ROWS: tl.constexpr):
    step = tl.load(state + 2)
    _write_keys(tl.load(state), tl.load(state + 1), step, keys, 0, WORDS)
    # of the host's memory: not from a cache
    row = rows + (step % ROWS) * 2
    tl.store(first_number, tl.load(row, volatile=True))
    tl.store(second_number, tl.load(row + 1, volatile=True))
    tl.store(state + 2, step + 1)


@fast_launch
@triton.jit
def _draw_keys(state, keys, first, WORDS: tl.constexpr):
    # of the step that has begun
    _write_keys(tl.load(state), tl.load(state + 1), tl.load(state + 2) - 1, keys, first, WORDS)


def begin_step(state: Tensor, keys: Tensor, rows: Tensor, numbers: Sequence[Tensor]) -> None:
    """Writes the keys `[n, 2]` and the two `numbers` of the step that `state` `[3]` counts, and counts it.

    `n` is a power of two. The numbers are those of its row in `rows` `[k, 2]`, which may be pinned memory of the host.
    """
    first, second = numbers
    # one warp: no thread counts the step before another has read its number
    _begin_step[(1,)](state, keys, rows, first, second, WORDS=keys.numel(), ROWS=len(rows), num_warps=1)


def draw_keys(state: Tensor, keys: Tensor, first: int) -> None:
    """Writes further keys `[n, 2]` of the step that has begun, from draw `first` on."""
    _draw_keys[(1,)](state, keys, first, WORDS=keys.numel(), num_warps=1)
