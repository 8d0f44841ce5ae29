"""Residual, layer norm, activation and dropout of labels with the gradient written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LabelUpdate(torch.autograd.Function):
    """`dropout(relu(layer_norm(x + residual)))`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, eps: float, dropout: float,
        seed: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """Returns `[C, D]`; `weight` and `bias` are those of the norm."""
        # Triton takes a moment to import
        from legnn.ops.label_update.triton_kernels import update

        out, normed, inverse = update(x, residual, weight, bias, eps, dropout, seed)
        ctx.save_for_backward(out, normed, inverse, weight)
        ctx.factor = 1.0 if seed is None else 1 / (1 - dropout)
        ctx.shapes = x.shape, None if residual is None else residual.shape
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `x`, `residual`, `weight` and `bias`."""
        from legnn.ops.label_update.triton_kernels import gradient

        d_x, d_residual, d_weight, d_bias = gradient(
            gradients[0].contiguous(), *ctx.saved_tensors, factor=ctx.factor, shapes=ctx.shapes
        )
        return d_x, d_residual, d_weight, d_bias, None, None, None
