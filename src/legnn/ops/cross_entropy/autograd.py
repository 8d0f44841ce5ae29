"""The cross-entropy of some nodes with the gradient written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class CrossEntropyFunction(torch.autograd.Function):
    """`1/divisor Σ_i w_i CE(y_i, softmax(logits_i))` over some nodes.

    Classes and weights are in the order of these nodes, `[n]`, if `by_place`; else classes are of all rows of the
    logits, `[M]`, and weights those of the classes, `[C]`, or None.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, y: Tensor, nodes: Tensor | None, divisor: float, weight: Tensor | None, by_place: bool
    ) -> tuple[Tensor, Tensor]:
        """Returns the loss and, without gradient, `[3]` the sum, the number of right predictions and their share."""
        # Triton takes a moment to import
        from legnn.ops.cross_entropy.triton_kernels import loss_and_numbers

        ctx.save_for_backward(logits, y, nodes, weight)
        ctx.rest = divisor, by_place
        loss, numbers = loss_and_numbers(logits, y, nodes, divisor, weight, by_place=by_place)
        ctx.mark_non_differentiable(numbers)
        # else a gradient of zeros is made for the numbers
        ctx.set_materialize_grads(False)
        return loss, numbers

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradient of the logits `[M, C]`, zero in rows of other nodes."""
        from legnn.ops.cross_entropy.triton_kernels import gradient

        (logits, y, nodes, weight), (divisor, by_place) = ctx.saved_tensors, ctx.rest
        found = gradient(gradients[0], logits, y, nodes, divisor, weight, by_place=by_place)
        return found, None, None, None, None, None
