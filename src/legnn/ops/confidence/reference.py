"""The most probable class in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor


def most_probable(logits: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """See `legnn.ops.confidence`; `max softmax(logits)` in single precision."""
    p, y = torch.softmax((logits if rows is None else logits.index_select(0, rows)).float(), -1).max(-1)
    return p, y
