"""What follows the labels' layer: residual, layer norm, activation and dropout of a handful of rows."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.ops import select
from legnn.ops.label_update.autograd import LabelUpdate
from legnn.ops.norm_act_dropout import apply_norm_act_dropout, draw_seed
from legnn.ops.rows import Norm


def update_labels(
    x: Tensor, residual: Tensor | None, norm: Norm | None, dropout: float, channels: int, *, training: bool
) -> Tensor:
    """`dropout(relu(norm(x + residual)))` `[C, D]`, with dropout in training only.

    Shapes: `x` `[C, D]` or wider, `residual` `[C, D]` or wider, or None; `D` is `channels`.
    """
    # two launches in the place of some ten, forward and backward
    if isinstance(norm, nn.LayerNorm) and x.is_cuda and select.kernels_for(x) is select.TRITON:
        seed = draw_seed(x) if training and dropout > 0 else None
        return LabelUpdate.apply(x, residual, norm.weight, norm.bias, norm.eps, dropout, seed)
    x = x[:, :channels]
    if residual is not None:
        x = x + residual[:, :channels]
    return apply_norm_act_dropout(x, norm, dropout, training=training)
