"""The keys of a step in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.runtime.hashing import GOLDEN, WORD, mix, random_words


def step_keys(state: Tensor, number: int, first: int = 0) -> Tensor:
    """`[number, 2]` 32-bit words, from draw `first` on, for `state` `[3]`: the words of the seed, the steps before."""
    low, high, step = state.tolist()
    key = int(mix(mix(torch.tensor(step & WORD)) ^ low)), int(mix(torch.tensor((high + step * GOLDEN) & WORD)))
    return random_words(first + torch.arange(number)[:, None], torch.arange(2)[None, :], key)
