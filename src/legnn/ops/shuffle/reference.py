"""A random permutation of `n` numbers in which each is computed by itself, in plain PyTorch.

A Feistel network permutes the numbers of `b` bits, whatever its function is: with `l` the upper and `r` the lower half,
`l ← l ⊕ f(r)` and `r ← r ⊕ f(l)` can be undone. A number that is not below `n` is permuted again until it is, which
leaves a permutation of those below `n`. The function hashes with a key of its own in each of eight rounds.

Of few numbers, halves have too few bits to hash: each gets a random word, and these are put in order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.runtime.hashing import GOLDEN, WORD, mix, random_words

ROUNDS = 4
"""Of both halves."""
LEAST = 256
"""Numbers that are permuted so."""


def bits_of_halves(number: int) -> tuple[int, int]:
    """Returns how many bits the upper and the lower half of numbers below `number` have."""
    bits = (number - 1).bit_length()
    return bits // 2, bits - bits // 2


def random_order(number: int, seed: Tensor) -> Tensor:
    """Returns the numbers below `number` in the order that `seed`, two 32-bit words, says."""
    words = seed.tolist()
    if number < LEAST:
        return random_words(torch.arange(number), 0, (words[0], words[1])).sort(stable=True).indices
    upper, lower = bits_of_halves(number)
    keys = [int(mix(torch.tensor((words[0] + j * GOLDEN) & WORD))) ^ words[1] for j in range(2 * ROUNDS)]

    def permute(x: Tensor) -> Tensor:
        left, right = x >> lower, x & (2**lower - 1)
        for j in range(0, 2 * ROUNDS, 2):
            left = left ^ mix(right ^ keys[j]) & (2**upper - 1)
            right = right ^ mix(left ^ keys[j + 1]) & (2**lower - 1)
        return left << lower | right

    x = permute(torch.arange(number))
    while (x >= number).any():
        x = torch.where(x >= number, permute(x), x)
    return x
