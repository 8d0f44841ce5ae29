"""Normalization, activation and dropout, which follow a layer."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.autograd import run
from legnn.ops.norm_act_dropout import autograd
from legnn.ops.rows import Norm


def apply_norm_act_dropout(
    x: Tensor, norm: Norm | None, dropout: float, *, training: bool, real: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))` `[n, D]`, with dropout in training only.

    Rows that are not `real` `[n]` bool count in no statistics of a batch norm and get no gradient from it.
    """
    return autograd.apply_norm_act_dropout(x, norm, dropout, draw_seed(x) if training and dropout > 0 else None, real)


def drop(x: Tensor, dropout: float, *, training: bool) -> Tensor:
    """`dropout(x)` `[n, D]` in training, otherwise `x` itself."""
    if not training or dropout == 0:
        return x
    (dropped,) = run(autograd.Dropout(dropout, draw_seed(x)), x)
    return dropped


def draw_seed(x: Tensor) -> Tensor:
    """Two 32-bit words that the run draws on the device of `x`, which does not synchronize."""
    return torch.randint(2**32, (2,), device=x.device)
