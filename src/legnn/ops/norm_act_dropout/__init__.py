"""Normalization, activation and dropout, which follow a layer."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops import select
from legnn.ops.norm_act_dropout import autograd, reference
from legnn.ops.norm_act_dropout.reference import Norm


def apply_norm_act_dropout(
    x: Tensor, norm: Norm | None, dropout: float, *, training: bool, real: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))` `[n, D]`, with dropout in training only.

    Rows that are not `real` `[n]` bool count in no statistics of a batch norm and get no gradient from it.
    """
    seed = draw_seed(x) if training and dropout > 0 else None
    kernels = select.kernels_for(x)
    # rows are padded where steps are captured, which is on a GPU alone: there are no numba kernels for them
    if kernels is None or (real is not None and kernels is select.NUMBA):
        return reference.apply_norm_act_dropout(x, norm, dropout, seed, real)
    return autograd.apply_norm_act_dropout(kernels, x, norm, dropout, seed, real)


def drop(x: Tensor, dropout: float, *, training: bool) -> Tensor:
    """`dropout(x)` `[n, D]` in training, otherwise `x` itself."""
    if not training or dropout == 0:
        return x
    kernels = select.kernels_for(x)
    if kernels is None:
        return reference.drop(x, dropout, draw_seed(x))
    return autograd.Dropout.apply(x.contiguous(), dropout, draw_seed(x), kernels)


def draw_seed(x: Tensor) -> Tensor:
    """Two 32-bit words that the run draws on the device of `x`, which does not synchronize."""
    return torch.randint(2**32, (2,), device=x.device)
