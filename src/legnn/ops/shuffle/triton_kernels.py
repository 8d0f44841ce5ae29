"""A random permutation in Triton, see `reference`."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime import hashing
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.runtime.launch import fast_launch
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


@fast_launch
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


@fast_launch
@triton.jit
def _sort_few(values, seed, out, number, BLOCK: tl.constexpr):
    """Puts each value where as many words are smaller than its own."""
    mine = tl.arange(0, BLOCK)[:, None]
    other = tl.arange(0, BLOCK)[None, :]
    word, than = _word(mine, seed), _word(other, seed)
    before = (than < word) | ((than == word) & (other < mine))
    place = tl.sum((before & (other < number)).to(tl.int32), 1)
    node = tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(values + node, mask=node < number, other=0), mask=node < number)


@triton.jit
def _word(number, seed):
    return mix(mix(number.to(tl.uint32) ^ tl.load(seed).to(tl.uint32)) ^ tl.load(seed + 1).to(tl.uint32))


def launch(values: Tensor, seed: Tensor) -> Tensor:
    """Returns `values` `[n]` in the order that `seed`, two 32-bit words, says."""
    out, number = torch.empty_like(values), values.numel()
    if number < reference.LEAST:
        _sort_few[(1,)](values.contiguous(), seed, out, number, BLOCK=reference.LEAST, num_warps=8)
        return out
    upper, lower = reference.bits_of_halves(number)
    _shuffle[(triton.cdiv(number, BLOCK),)](
        values.contiguous(), seed, out, number, UPPER=upper, LOWER=lower, BLOCK=BLOCK, num_warps=4
    )
    return out
