"""The contract of a layer, and what layers have in common.

A layer maps `x` `[N, in]` and `labels` `[C, in]` over a `LabelGraph` to `[M, out]` and `[C, out]`, before activation.
In a whole graph `N = M`; in a sampled block the `M` target nodes are the first of the `N` source nodes. `labels` is
None in a vanilla layer, which passes messages along `A` alone; new labels are None there and in the last layer, whose
labels nothing reads. `add`, `[M, out]` or `x` itself, is added to the nodes' output.

A layer with `reads_first = True` takes `first`, too: the states before the first layer, `[M, in]` and `[C, in]`.

A layer with `reads_by_products = True` reads `x` by dropout and the products of `nn.products` alone: no other tensor
shares the gradient it returns for `x`, which may therefore be changed in place.

A layer with `activates = False` is followed by no activation.

A layer with `takes_padding = True` computes padded blocks (`graph.padding`) as it does others: nothing it does depends
on rows or edges that are padding.

In training, `dropout` is applied to what a layer reads of the senders of messages, and in a draw of its own to what
scores of targets are computed from; `add` and root weights are left alone.

Matrices are used in the precision of `x`. On a GPU nodes have padding columns (`ops.runtime.padding`), which are zero;
labels have none where a layer reads them, and may have some where it returns them: to trim them in between takes a
gradient two launches.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.errors import InputError
from legnn.graph import LabelGraph
from legnn.nn.products import product
from legnn.ops.runtime.padding import pad_columns


class Linear(nn.Linear):
    """`x Wᵀ + b` in the precision of `x`."""

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, in]`; returns `[n, padded_width(out)]`."""
        return add_bias(product(x, self.weight), self.bias)


def add_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    """`x + b`, or `x` if there is no bias."""
    return x if bias is None else x + pad_columns(bias, x.size(1)).to(x.dtype)


def glorot(*shape: int) -> nn.Parameter:
    """A parameter with Glorot's initialization."""
    parameter = nn.Parameter(torch.empty(shape))
    nn.init.xavier_uniform_(parameter)
    return parameter


def typed_linear(in_channels: int, out_channels: int) -> Linear:
    """One of `W_N`, `W_L`: a Glorot matrix without bias."""
    linear = Linear(in_channels, out_channels, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def channels_per_head(out_channels: int, heads: int) -> int:
    """Channels of each head of attention whose heads are concatenated."""
    if out_channels % heads:
        raise InputError(f"hidden = {out_channels} does not divide by heads = {heads}; give a multiple of the heads")
    return out_channels // heads


def to_logits(x: Tensor, classes: int) -> Tensor:
    """`x` `[n, C]` or wider as logits `[n, C]`: without padding columns, in single precision at least."""
    return x[:, :classes].to(torch.promote_types(x.dtype, torch.float32))


def targets_of(x: Tensor, graph: LabelGraph) -> Tensor:
    """The rows of `x` `[N, D]` that are target nodes, `[M, D]`."""
    # a slice of everything would still cost a pass over [M, D] in the gradient
    return x if x.size(0) == graph.num_nodes else x[: graph.num_nodes]


def trim(x: Tensor, columns: int) -> Tensor:
    """`x` `[n, D]` or wider without its columns beyond `columns`."""
    # a slice of everything would still cost a pass over it in the gradient
    return x if x.size(1) == columns else x[:, :columns]


def column(values: Tensor, like: Tensor) -> Tensor:
    """`values` `[n]` as `[n, 1]` in the precision of `like`."""
    return values.to(like.dtype)[:, None]
