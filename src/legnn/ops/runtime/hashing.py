"""Random numbers by hashing a key and a position: no state, the same on every device and in any order.

The same in numba's and in Triton's kernels: `jit.mix`, `hashing_triton.mix`.
"""

from __future__ import annotations

from torch import Tensor

WORD = 0xFFFFFFFF
GOLDEN = 0x9E3779B9
"""2³² divided by the golden ratio: an odd number without a pattern in its bits, as usual in hashing."""
LABELS = 0x5BD1E995
"""Added to the key for rows of labels, so that label 3 and node 3 draw different numbers."""


def mix(word: Tensor) -> Tensor:
    """Returns a permutation of the 32-bit words in which every bit depends on every other (Wellons' `lowbias32`)."""
    word = (word ^ (word >> 16)) * 0x7FEB352D & WORD
    word = (word ^ (word >> 15)) * 0x846CA68B & WORD
    return word ^ (word >> 16)


def random_words(row: Tensor, column: Tensor | int, key: tuple[int, int]) -> Tensor:
    """Returns a random 32-bit word, as int64, for each row and column; `key` is two 32-bit words."""
    return mix(((mix(row & WORD ^ key[0]) ^ key[1]) + (column * GOLDEN & WORD)) & WORD)
