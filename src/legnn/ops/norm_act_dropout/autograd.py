"""Normalization, activation and dropout with their gradients written out, over the kernels of one device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from legnn.ops.norm_act_dropout.reference import Norm, apply_norm, running_statistics
from legnn.ops.runtime.gradients import apply_function
from legnn.ops.select import NUMBA, Kernels
from legnn.ops.types import NormInputs, RealRows


def apply_norm_act_dropout(
    kernels: Kernels, x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None, real: Tensor | None = None
) -> Tensor:
    """`reference.apply_norm_act_dropout`; what is not `real` becomes any finite number."""
    x = x.contiguous()
    if isinstance(norm, torch.nn.BatchNorm1d):
        if norm.training:
            return BatchNormActDropout.apply(x, norm.weight, norm.bias, norm, dropout, seed, kernels, real)
        if not torch.is_grad_enabled():
            mean, variance, _ = running_statistics(norm)
            scale = norm.weight * torch.rsqrt(variance + norm.eps)
            return kernels.norm_act_dropout.scale_act_dropout(
                x, scale, norm.bias - mean * scale, dropout, seed, relu=True
            )
    if isinstance(norm, torch.nn.LayerNorm) and kernels is NUMBA:
        from legnn.ops.norm_act_dropout.cpu_layer_norm import LayerNormActDropout

        return apply_function(LayerNormActDropout, x, norm.weight, norm.bias, norm, dropout, seed)
    if norm is not None:
        # on a GPU PyTorch's layer norm is one good kernel already
        x = apply_norm(norm, x)
    return apply_function(ActDropout, x, dropout, seed, kernels)


class Dropout(torch.autograd.Function):
    """`dropout(x)`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: float, seed: Tensor, kernels: Kernels) -> Tensor:
        """Returns `[n, D]`."""
        ctx.rest = dropout, seed, kernels
        return kernels.norm_act_dropout.scale_act_dropout(x, None, None, dropout, seed, relu=False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Returns the gradient of `x`: its entries are kept or dropped as those of `x`, by the same seed."""
        dropout, seed, kernels = ctx.rest
        gradient = gradients[0].contiguous()
        dropped = kernels.norm_act_dropout.scale_act_dropout(gradient, None, None, dropout, seed, relu=False)
        return dropped, None, None, None


class ActDropout(torch.autograd.Function):
    """`dropout(relu(x))`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: float, seed: Tensor | None, kernels: Kernels) -> Tensor:
        """Returns `[n, D]`."""
        out = kernels.norm_act_dropout.scale_act_dropout(x, None, None, dropout, seed, relu=True)
        # entries that were dropped or negative are zero in the output: it is the mask of the gradient
        ctx.save_for_backward(out)
        ctx.rest = _keep_factor(dropout, seed), kernels
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Returns the gradient of `x`."""
        factor, kernels = ctx.rest
        gradient = gradients[0].contiguous()
        return kernels.norm_act_dropout.act_dropout_gradient(gradient, *ctx.saved_tensors, factor), None, None, None


class BatchNormActDropout(torch.autograd.Function):
    """`dropout(relu(batch_norm(x)))` in training."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, norm: torch.nn.BatchNorm1d,
        dropout: float, seed: Tensor | None, kernels: Kernels, real: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """Returns `[n, D]`; `weight` and `bias` are those of `norm`."""
        rows = None if real is None else RealRows(real, real.sum())
        ops = kernels.norm_act_dropout
        found = ops.batch_norm_statistics(x, norm, rows)
        out = ops.scale_act_dropout(x, found.scale, found.shift, dropout, seed, relu=True)
        ctx.save_for_backward(out if ops.READS_OUTPUT else None, x, seed, *found)
        ctx.rest = dropout, kernels, rows
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of `x`, `weight` and `bias`."""
        dropout, kernels, rows = ctx.rest
        out, x, seed, *norm = ctx.saved_tensors
        found = kernels.norm_act_dropout.norm_act_dropout_gradient(
            gradients[0].contiguous(), out, x, NormInputs(*norm), dropout, seed, rows
        )
        return *found, None, None, None, None, None


def _keep_factor(dropout: float, seed: Tensor | None) -> float:
    """The factor of entries that are not dropped."""
    return 1.0 if seed is None else 1 / (1 - dropout)
