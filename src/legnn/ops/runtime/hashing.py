"""Random words by hashing: no state, the same on every device, in any order."""

from __future__ import annotations

from torch import Tensor

WORD = 0xFFFFFFFF
GOLDEN = 0x9E3779B9
"""An odd number without pattern in its bits, as usual in hashing."""
LABELS = 0x5BD1E995
"""Tells the rows of labels from those of nodes."""


def mix(word: Tensor) -> Tensor:
    """A permutation of the 32-bit words in which every bit depends on every other (Wellons' `lowbias32`)."""
    word = (word ^ (word >> 16)) * 0x7FEB352D & WORD
    word = (word ^ (word >> 15)) * 0x846CA68B & WORD
    return word ^ (word >> 16)


def hashed(row: Tensor, column: Tensor | int, key: tuple[int, int]) -> Tensor:
    """A random 32-bit word, as int64, for each row and column; `key` is two such words."""
    return mix(((mix(row & WORD ^ key[0]) ^ key[1]) + (column * GOLDEN & WORD)) & WORD)
