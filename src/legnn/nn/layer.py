"""The base class of layers, and the parameters they are made of.

In training, `dropout` is applied to what a layer reads of the senders of messages; `residual` and root weights are left
alone. Matrices are used in the precision of `x`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, TypedDict, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.config.model import Normalize
from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.ops.norm_act_dropout import drop

Nodes = tuple[Tensor, Tensor | None]
"""States of nodes `[n, D]` and, where labels are nodes, of labels `[C, D]`."""


class Factors(NamedTuple):
    """`H = X Pᵀ` `[N, D]` by its factors, for a layer that reads `H` in products alone: `H Wᵀ = X (W P)ᵀ`.

    With much fewer features than channels that is less work, forward and backward.
    """

    x: Tensor
    """`X` `[N, F]`."""
    weight: Tensor
    """`P` `[D, F]`."""

    def size(self, axis: int) -> int:
        """`N` or `D`."""
        return (self.x if axis == 0 else self.weight).size(0)


class LayerOptions(TypedDict, total=False):
    """The options of `LabelLayer`, which all layers have."""

    enhanced: bool
    update_labels: bool
    normalize: Normalize
    bias: bool
    label_bias: bool
    dropout: float


class LabelLayer(nn.Module, ABC):
    """One layer over a label graph, before activation.

    It maps `x` `[N, in]` and `labels` `[C, in]` to `[M, out]` and `[C, out]`. In a whole graph `N = M`; in a sampled
    block the `M` target nodes are the first of the `N` source nodes.

    Args:
        in_channels: columns of `x` and `labels`.
        out_channels: columns of the results.
        enhanced: whether labels are nodes; without, messages are passed along `A` alone.
        update_labels: whether new labels are computed; False in the last layer, whose labels nothing reads.
        normalize: over all edges of `A'` (`"joint"`), or within each kind of edge (`"relation"`).
        bias: False leaves out `b_N`, which a batch norm would cancel.
        label_bias: False leaves out `b_L`.
        dropout: of what the layer reads, in training.
    """

    uses_initial_state: ClassVar[bool] = False
    """Whether it reads the states before the first layer, too."""
    activates: ClassVar[bool] = True
    """Whether an activation follows."""
    supports_padding: ClassVar[bool] = False
    """Whether it computes padded blocks (`graph.padding`) as others: nothing depends on rows or edges of padding."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        bias: bool = True,
        label_bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {dropout}")
        if normalize not in get_args(Normalize):
            raise InputError(f"normalize must be one of {', '.join(get_args(Normalize))}, got {normalize!r}")
        self.in_channels, self.out_channels, self.normalize = in_channels, out_channels, normalize
        self.enhanced, self.update_labels, self.dropout = enhanced, enhanced and update_labels, dropout
        self.has_bias, self.has_label_bias = bias, self.update_labels and label_bias

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """New states of nodes and labels; those of labels are None where they are not updated.

        Shapes: `x` `[N, in]`, `labels` `[C, in]` or None, `residual` `[M, out]` or longer, which is added to the nodes'
        result, `initial` `[M, in]` and `[C, in]`; returns `[M, out]`, `[C, out]` or None.
        """

    def __call__(self, x: Tensor, labels: Tensor | None, graph: LabelGraph, *others: Any, **named: Any) -> Any:
        """Checks what `forward` relies on, in constant time."""
        if not isinstance(graph, LabelGraph):
            raise InputError(f"graph must be a LabelGraph, got {type(graph).__name__}")
        if not isinstance(x, Factors):
            check_states("x", x, graph.adjacency.num_cols, self.in_channels)
        if labels is not None:
            check_states("labels", labels, graph.num_classes, self.in_channels)
        return super().__call__(x, labels, graph, *others, **named)

    def drop(self, x: Tensor) -> Tensor:
        """`dropout(x)` in training."""
        return x if self.dropout == 0 else drop(x, self.dropout, training=self.training)


class Linear(nn.Linear):
    """`x Wᵀ + b` in the precision of `x`."""

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, in]`; returns `[n, out]`."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor | Factors, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x Wᵀ + b` `[n, out]` in the precision of `x`, for `weight` `[out, in]`."""
    if isinstance(x, Factors):
        return linear(x.x, weight.to(x.x.dtype) @ x.weight.to(x.x.dtype), bias)
    return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


def add_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    """`x + b`, or `x` if there is no bias."""
    return x if bias is None else x + bias.to(x.dtype)


def glorot(*shape: int) -> nn.Parameter:
    """A parameter with Glorot's initialization."""
    parameter = nn.Parameter(torch.empty(shape))
    nn.init.xavier_uniform_(parameter)
    return parameter


def zeros(*shape: int) -> nn.Parameter:
    """A parameter of zeros."""
    return nn.Parameter(torch.zeros(shape))


def glorot_linear(in_channels: int, out_channels: int) -> Linear:
    """One of `W_N`, `W_L`: a Glorot matrix without bias."""
    module = Linear(in_channels, out_channels, bias=False)
    nn.init.xavier_uniform_(module.weight)
    return module


def channels_per_head(out_channels: int, heads: int) -> int:
    """Channels of each head of attention whose heads are concatenated."""
    if heads < 1:
        raise InputError(f"heads must be at least 1, got {heads}")
    if out_channels % heads:
        raise InputError(f"hidden = {out_channels} does not divide by heads = {heads}; give a multiple of the heads")
    return out_channels // heads


def to_logits(x: Tensor) -> Tensor:
    """`x` `[n, C]` as logits, in single precision at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def targets_of(x: Tensor, graph: LabelGraph) -> Tensor:
    """The rows of `x` `[N, D]` that are target nodes, `[M, D]`."""
    # a slice of everything would still cost a pass over [M, D] in the gradient
    return x if x.size(0) == graph.num_nodes else x[: graph.num_nodes]


def unsqueeze_as(values: Tensor, like: Tensor) -> Tensor:
    """`values` `[n]` as `[n, 1]` in the precision of `like`."""
    return values.to(like.dtype)[:, None]


def check_states(name: str, x: Tensor, rows: int | None, columns: int) -> None:
    """Raises `InputError` unless `x` is a floating-point matrix `[rows, columns]`; None for any number of rows."""
    if not isinstance(x, Tensor) or not x.is_floating_point() or x.dim() != 2:
        kind = f"{list(x.shape)} of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"{name} must be a floating-point tensor with two dimensions, got {kind}")
    if columns != x.size(1) or rows not in (None, x.size(0)):
        expected = f"{columns} columns" if rows is None else f"{rows} rows and {columns} columns"
        raise InputError(f"{name} must have {expected}, got shape {list(x.shape)}")
