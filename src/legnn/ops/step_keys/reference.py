"""The keys of a step in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.runtime.hashing import GOLDEN, WORD, mix, random_words


def step_keys(state: Tensor, number: int) -> Tensor:
    """`[number, 2]` 32-bit words for `state` `[3]`: the two words of the seed, and the number of the step."""
    first, second, step = state.tolist()
    key = int(mix(mix(torch.tensor(step & WORD)) ^ first)), int(mix(torch.tensor((second + step * GOLDEN) & WORD)))
    return random_words(torch.arange(number)[:, None], torch.arange(2)[None, :], key)
