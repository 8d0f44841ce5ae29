"""Matrices padded with columns of zeros.

On a GPU a matrix product with 540 columns takes longer than one with 544, in bf16 three to four times as long: the
number of columns has to be a multiple of eight. States have such a width already (`nn.padding`); here it is that of
what attention computes, whose scores are columns beside the values.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.ops.backend import by_device

COLUMN_MULTIPLE = {"cuda": 8}
"""By device, the number that columns are padded to a multiple of; 1 elsewhere."""


def padded_width(columns: int, like: Tensor) -> int:
    """Returns the width of a matrix that holds `columns`, on the device and in the precision of `like`."""
    step = by_device(COLUMN_MULTIPLE, like, 1) if like.dtype in (torch.float32, torch.bfloat16) else 1
    return -(-columns // step) * step


def pad_columns(x: Tensor, columns: int) -> Tensor:
    """Returns `x` `[..., D]` padded with zeros to `columns`."""
    return x if x.size(-1) == columns else F.pad(x, (0, columns - x.size(-1)))
