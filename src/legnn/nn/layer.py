"""What every layer of a label-enhanced network has in common.

A layer maps `x` `[M, in]` and `labels` `[C, in]` over a `LabelGraph` to `[M, out]` and `[C, out]`, before activation.
`labels` is None in a vanilla layer, which passes messages along `A` alone; what comes out for the labels is None there
and in the last layer, whose labels nothing reads.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from legnn.errors import InputError

Normalize = Literal["relation", "joint"]
"""How the weights of `A'` are normalized: over all edges at once, as in the paper's equations (`joint`), or within
each kind of edge and averaged over the kinds that a node really has (`relation`)."""


def glorot(*shape: int) -> nn.Parameter:
    """A trained matrix with Glorot's initial values."""
    parameter = nn.Parameter(torch.empty(shape))
    nn.init.xavier_uniform_(parameter)
    return parameter


def typed_linear(in_channels: int, out_channels: int) -> nn.Linear:
    """One of `W_N`, `W_L`: a Glorot matrix with no bias."""
    linear = nn.Linear(in_channels, out_channels, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def channels_per_head(out_channels: int, heads: int) -> int:
    """Of attention whose heads are concatenated."""
    if out_channels % heads:
        raise InputError(f"hidden = {out_channels} does not divide by heads = {heads}; give a multiple of the heads")
    return out_channels // heads


def inverse_sqrt(degree: Tensor, like: Tensor) -> Tensor:
    """`d^{-1/2}` as a column in the precision of `like`, 0 where the degree is 0."""
    degree = degree.to(like.dtype)
    return degree.rsqrt().masked_fill(degree == 0, 0.0)[:, None]


def column(values: Tensor, like: Tensor) -> Tensor:
    """`values` `[n]` as `[n, 1]` in the precision of `like`."""
    return values.to(like.dtype)[:, None]
