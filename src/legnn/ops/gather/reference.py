"""Rows of a matrix in plain PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from legnn.ops.gather import FeatureCache


def gather_rows(values: Tensor, rows: Tensor, device: torch.device, hot: FeatureCache | None) -> Tensor:
    """Returns the rows `[n, …]` of `values` `[M, …]` on `device`."""
    return values.index_select(0, rows.to(values.device)).to(device)
