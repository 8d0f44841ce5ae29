"""How wide matrices are.

On a GPU the product of matrices with 540 columns takes longer than that with 544, in bf16 three to four times as long:
columns have to come in multiples of eight. So matrices have as many there, the last of them zero; matrices of weights
are filled up where they are used, and nobody who asks for 540 channels gets another model for it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LANES = {"cuda": 8}
"""By device: columns come in multiples of this."""


def padded_width(columns: int, like: Tensor) -> int:
    """How many columns a matrix has that is to hold `columns`, where `like` lies and in its precision."""
    step = LANES.get(like.device.type, 1) if like.dtype in (torch.float32, torch.bfloat16) else 1
    return -(-columns // step) * step


def pad_columns(x: Tensor, columns: int) -> Tensor:
    """`x` `[..., D]` with columns of zeros up to `columns`."""
    return x if x.size(-1) == columns else F.pad(x, (0, columns - x.size(-1)))
