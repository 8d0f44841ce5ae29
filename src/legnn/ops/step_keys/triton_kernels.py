"""The keys of a step in Triton, see `reference`."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime import hashing
from legnn.ops.runtime.hashing_triton import mix

GOLDEN = tl.constexpr(hashing.GOLDEN)


@triton.jit
def _draw_keys(state, keys, WORDS: tl.constexpr):
    first = tl.load(state).to(tl.uint32)
    second = tl.load(state + 1).to(tl.uint32)
    count = tl.load(state + 2)
    step = count.to(tl.uint32)
    place = tl.arange(0, WORDS)
    row = (place // 2).to(tl.uint32)
    column = (place % 2).to(tl.uint32)
    word = mix(row ^ mix(mix(step) ^ first)) ^ mix(second + step * GOLDEN)
    tl.store(keys + place, mix(word + column * GOLDEN).to(tl.int64))
    tl.store(state + 2, count + 1)


def draw_keys(state: Tensor, keys: Tensor) -> None:
    """Writes the keys `[n, 2]` of the step that `state` `[3]` counts, and counts it; `n` is a power of two."""
    # one warp: no thread counts the step before another has read its number
    _draw_keys[(1,)](state, keys, WORDS=keys.numel(), num_warps=1)
