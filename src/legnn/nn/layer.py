"""What every layer of a label-enhanced network has in common.

A layer maps `x` `[N, in]` and `labels` `[C, in]` over a `LabelGraph` to `[M, out]` and `[C, out]`, before activation.
In a whole graph `N = M`; in a part of one the `M` nodes that receive are the first of the `N` that send. `labels` is
None in a vanilla layer, which passes messages along `A` alone; what comes out for the labels is None there and in the
last layer, whose labels nothing reads. `add`, `[M, out]` or `x` itself, is added to the nodes' output if given.

A layer that reads `x` by products alone (`nn.product`) says so with `reads_by_products = True`: the gradient it gives
to `x` is its own then, and may be added to in place.

Features carry the precision: matrices are taken in that of `x`. On a GPU nodes have a few columns more than channels
(`ops.layout`), which are zero; labels never have.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.config.model import Normalize as Normalize
from legnn.errors import InputError
from legnn.nn.product import product
from legnn.ops.runtime.padding import pad_columns


class Linear(nn.Linear):
    """`x Wᵀ + b` in the precision of `x`."""

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, in]`; gives `[n, out]`, as wide as `padded_width` says."""
        return biased(product(x, self.weight), self.bias)


def biased(x: Tensor, bias: Tensor | None) -> Tensor:
    """`x + b`."""
    return x if bias is None else x + pad_columns(bias, x.size(1)).to(x.dtype)


def glorot(*shape: int) -> nn.Parameter:
    """A trained matrix with Glorot's initial values."""
    parameter = nn.Parameter(torch.empty(shape))
    nn.init.xavier_uniform_(parameter)
    return parameter


def typed_linear(in_channels: int, out_channels: int) -> Linear:
    """One of `W_N`, `W_L`: a Glorot matrix with no bias."""
    linear = Linear(in_channels, out_channels, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def channels_per_head(out_channels: int, heads: int) -> int:
    """Of attention whose heads are concatenated."""
    if out_channels % heads:
        raise InputError(f"hidden = {out_channels} does not divide by heads = {heads}; give a multiple of the heads")
    return out_channels // heads


def scale_dtype(x: Tensor) -> torch.dtype:
    """The precision in which degrees are turned into scales for `x`: at least single."""
    return torch.promote_types(x.dtype, torch.float32)


def counted(scale: Tensor, multiplicity: Tensor | None) -> Tensor:
    """`scale` of a sum in which each term stands for several; None where each stands for itself."""
    return scale if multiplicity is None else scale * multiplicity.to(scale.dtype)


def inverse_sqrt(degree: Tensor, dtype: torch.dtype) -> Tensor:
    """`d^{-1/2}`, 0 where the degree is 0."""
    degree = degree.to(dtype)
    return degree.rsqrt().masked_fill(degree == 0, 0.0)


def inverse(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """`1 / w`, 1 where nothing came in and there is nothing to divide."""
    return weight.masked_fill(weight == 0, 1.0).to(dtype).reciprocal()


def column(values: Tensor, like: Tensor) -> Tensor:
    """`values` `[n]` as `[n, 1]` in the precision of `like`."""
    return values.to(like.dtype)[:, None]
