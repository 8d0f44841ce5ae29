"""Normalization, activation and dropout with their gradients written out, over the kernels of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from legnn.ops.autograd import Inputs, Operation, Outputs, run
from legnn.ops.backend import backend
from legnn.ops.norm_act_dropout import reference
from legnn.ops.norm_act_dropout.reference import running_statistics
from legnn.ops.rows import Norm, apply_norm
from legnn.ops.types import NormInputs


def apply_norm_act_dropout(
    x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None, real: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))`, without dropout if `seed` is None; what is not `real` becomes any finite number."""
    kernels = backend("norm_act_dropout", x)
    if kernels is reference:
        return reference.apply_norm_act_dropout(x, norm, dropout, seed, real)
    if isinstance(norm, torch.nn.BatchNorm1d):
        if norm.training:
            return run(BatchNormActDropout(norm, dropout, seed, real), x, norm.weight, norm.bias)[0]
        if not torch.is_grad_enabled():
            mean, variance, _ = running_statistics(norm)
            scale = norm.weight * torch.rsqrt(variance + norm.eps)
            shift = norm.bias - mean * scale
            return kernels.scale_act_dropout(x.contiguous(), scale, shift, dropout, seed, relu=True)
    if norm is not None:
        x = apply_norm(norm, x)
    return run(ActDropout(dropout, seed), x)[0]


@dataclass(eq=False)
class Dropout(Operation):
    """`dropout(x)`."""

    dropout: float
    seed: Tensor
    package = "norm_act_dropout"

    def forward(self, x: Tensor) -> Outputs:
        """Returns `[n, D]`."""
        return (self.kernels.scale_act_dropout(x.contiguous(), None, None, self.dropout, self.seed, relu=False),)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradient of `x`: its entries are dropped where those of `x` are, by the same seed."""
        return self.forward(*gradients)

    def reference(self, x: Tensor) -> Outputs:
        """See `reference.drop`."""
        return (reference.drop(x, self.dropout, self.seed),)


@dataclass(eq=False)
class ActDropout(Operation):
    """`dropout(relu(x))`."""

    dropout: float
    seed: Tensor | None
    package = "norm_act_dropout"
    # entries that were dropped or negative are zero in the output: it is the mask of the gradient
    reread, rereads_output = (0,), True

    def forward(self, x: Tensor) -> Outputs:
        """Returns `[n, D]`."""
        return (self.kernels.scale_act_dropout(x.contiguous(), None, None, self.dropout, self.seed, relu=True),)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradient of `x`."""
        factor = _keep_factor(self.dropout, self.seed)
        return (self.kernels.act_dropout_gradient(gradients[0].contiguous(), inputs[0], factor),)

    def reference(self, x: Tensor) -> Outputs:
        """See `reference.act_dropout`."""
        return (reference.act_dropout(x, self.dropout, self.seed),)


@dataclass(eq=False)
class BatchNormActDropout(Operation):
    """`dropout(relu(batch_norm(x)))` in training, of `x` and the weight and bias of `norm`."""

    norm: torch.nn.BatchNorm1d
    dropout: float
    seed: Tensor | None
    real: Tensor | None
    package = "norm_act_dropout"
    reread = (0, 1, 2)

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor) -> Outputs:
        """Returns `[n, D]`, and updates the running statistics."""
        x, kernels = x.contiguous(), self.kernels
        statistics = kernels.batch_norm_statistics(x, self.norm, self.real)
        out = kernels.scale_act_dropout(x, statistics.scale, statistics.shift, self.dropout, self.seed, relu=True)
        self.saved = out, *statistics
        return (out,)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of the inputs."""
        (x, _, _), (out, *norm), (gradient,) = inputs, saved, gradients
        return self.kernels.norm_act_dropout_gradient(
            gradient.contiguous(), out, x.contiguous(), NormInputs(*norm), self.dropout, self.seed, self.real
        )

    def reference(self, x: Tensor, weight: Tensor, bias: Tensor) -> Outputs:
        """The same, with the running statistics as they are."""
        x = reference.batch_norm(x, weight, bias, self.norm.eps, self.real)
        return (reference.act_dropout(x, self.dropout, self.seed),)


def _keep_factor(dropout: float, seed: Tensor | None) -> float:
    """The factor of entries that are not dropped."""
    return 1.0 if seed is None else 1 / (1 - dropout)
