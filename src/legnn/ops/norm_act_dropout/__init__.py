"""Normalization, activation and dropout, which follow a layer, with their gradients written out."""

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
    x: Tensor, norm: Norm | None, dropout: float, *, training: bool, valid_mask: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))` `[n, D]`, with dropout in training only.

    Rows outside `valid_mask` `[n]` bool count in no statistics of a batch norm and get no gradient from it.
    """
    seed = draw_seed(x) if training and dropout > 0 else None
    return norm_act_dropout_by_seed(x, norm, dropout, seed, valid_mask)


def drop(x: Tensor, dropout: float, *, training: bool) -> Tensor:
    """`dropout(x)` `[n, D]` in training, otherwise `x` itself."""
    if not training or dropout == 0:
        return x
    (dropped,) = run(Dropout(dropout, draw_seed(x)), x)
    return dropped


def draw_seed(x: Tensor) -> Tensor:
    """Two 32-bit words that the run draws on the device of `x`, which does not synchronize."""
    return torch.randint(2**32, (2,), device=x.device)


def norm_act_dropout_by_seed(
    x: Tensor, norm: Norm | None, dropout: float, seed: Tensor | None, valid_mask: Tensor | None = None
) -> Tensor:
    """`dropout(relu(norm(x)))`, without dropout if `seed` is None; rows outside `valid_mask` become any numbers."""
    kernels = backend("norm_act_dropout", x)
    if kernels is reference:
        return reference.apply_norm_act_dropout(x, norm, dropout, seed, valid_mask)
    if isinstance(norm, torch.nn.BatchNorm1d):
        if norm.training:
            return run(BatchNormActDropout(norm, dropout, seed, valid_mask), x, norm.weight, norm.bias)[0]
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
        factor = 1.0 if self.seed is None else 1 / (1 - self.dropout)
        return (torch.ops.aten.threshold_backward(gradients[0].contiguous(), inputs[0], 0).mul_(factor),)

    def reference(self, x: Tensor) -> Outputs:
        """See `reference.act_dropout`."""
        return (reference.act_dropout(x, self.dropout, self.seed),)


@dataclass(eq=False)
class BatchNormActDropout(Operation):
    """`dropout(relu(batch_norm(x)))` in training, of `x` and the weight and bias of `norm`.

    Kernels sum over the rows; the statistics of the columns, `[D]`, are computed from these sums in double precision.
    """

    norm: torch.nn.BatchNorm1d
    dropout: float
    seed: Tensor | None
    valid_mask: Tensor | None
    package = "norm_act_dropout"
    reread = (0, 1, 2)

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor) -> Outputs:
        """Returns `[n, D]`, and updates the running statistics."""
        x, kernels = x.contiguous(), self.kernels
        running_mean, running_var, momentum = running_statistics(self.norm)
        count = self._count(x)
        distance, squares = kernels.statistics_sums(x, running_mean, self.valid_mask) / count
        variance = (squares - distance.square()).clamp(min=0)
        mean, inverse = running_mean + distance.float(), torch.rsqrt(variance + self.norm.eps).float()
        running_mean += momentum * distance.float()
        running_var += momentum * ((variance * (count / (count - 1).clamp(min=1))).float() - running_var)
        scale = weight * inverse
        shift = bias - mean * scale
        out = kernels.scale_act_dropout(x, scale, shift, self.dropout, self.seed, relu=True)
        self.saved = out, mean, inverse, scale, shift
        return (out,)

    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of the inputs; rows outside `valid_mask` have the gradient zero."""
        (x, _, _), (out, *norm), gradient = inputs, saved, gradients[0].contiguous()
        x, others = x.contiguous(), (NormInputs(*norm), self.dropout, self.seed, self.valid_mask)
        sums = self.kernels.gradient_sums(gradient, out, x, *others).float()
        d_x = self.kernels.norm_gradient(gradient, out, x, sums / self._count(x), *others)
        return d_x, sums[1], sums[0]

    def reference(self, x: Tensor, weight: Tensor, bias: Tensor) -> Outputs:
        """The same, with the running statistics as they are."""
        x = reference.batch_norm(x, weight, bias, self.norm.eps, self.valid_mask)
        return (reference.act_dropout(x, self.dropout, self.seed),)

    def _count(self, x: Tensor) -> Tensor:
        """The number of rows in the statistics; a tensor, since reading it would synchronize."""
        if self.valid_mask is None:
            return torch.full((), x.size(0), dtype=torch.double, device=x.device)
        return self.valid_mask.sum().double()
