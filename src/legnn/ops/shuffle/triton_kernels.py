"""A random permutation in Triton, see `reference`."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime import hashing
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.shuffle import reference

GOLDEN = tl.constexpr(hashing.GOLDEN)
ROUNDS = tl.constexpr(reference.ROUNDS)
BLOCK = 128


@triton.jit
def _permute(x, seed, UPPER: tl.constexpr, LOWER: tl.constexpr):
    first = tl.load(seed).to(tl.uint32)
    second = tl.load(seed + 1).to(tl.uint32)
    left = x >> LOWER
    right = x & ((1 << LOWER) - 1)
    for j in tl.static_range(ROUNDS):
        left = left ^ (mix(right ^ mix(first + ((2 * j) * GOLDEN & 0xFFFFFFFF)) ^ second) & ((1 << UPPER) - 1))
        right = right ^ (mix(left ^ mix(first + ((2 * j + 1) * GOLDEN & 0xFFFFFFFF)) ^ second) & ((1 << LOWER) - 1))
    return (left << LOWER) | right


@triton.jit
def _shuffle(values, seed, out, number, UPPER: tl.constexpr, LOWER: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < number
    x = _permute(place.to(tl.uint32), seed, UPPER, LOWER)
    away = inside & (x.to(tl.int64) >= number)
    while tl.max(away.to(tl.int32), 0) > 0:
        x = tl.where(away, _permute(x, seed, UPPER, LOWER), x)
        away = inside & (x.to(tl.int64) >= number)
    tl.store(out + place, tl.load(values + x.to(tl.int64), mask=inside, other=0), mask=inside)


def launch(values: Tensor, seed: Tensor) -> Tensor:
    """Returns `values` `[n]` in the order that `seed`, two 32-bit words, says."""
    upper, lower = reference.bits_of_halves(values.numel())
    out = torch.empty_like(values)
    _shuffle[(triton.cdiv(values.numel(), BLOCK),)](
        values.contiguous(), seed, out, values.numel(), UPPER=upper, LOWER=lower, BLOCK=BLOCK, num_warps=4
    )
    return out
