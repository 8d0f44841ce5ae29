"""The cross-entropy of some nodes with the gradient written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class CrossEntropyFunction(torch.autograd.Function):
    """`1/divisor Σ_i w_{y_i} CE(y_i, softmax(logits_i))`."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, y: Tensor, nodes: Tensor | None, divisor: float, class_weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Returns the loss and, without gradient, `[3]` the sum, the number of right predictions and their share."""
        # Triton takes a moment to import
        from legnn.ops.cross_entropy.triton_kernels import loss_and_numbers

        ctx.save_for_backward(logits, y, nodes, class_weight)
        ctx.divisor = divisor
        loss, numbers = loss_and_numbers(logits, y, nodes, divisor, class_weight)
        ctx.mark_non_differentiable(numbers)
        return loss, numbers

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradient of the logits `[M, C]`, zero in rows of other nodes."""
        from legnn.ops.cross_entropy.triton_kernels import gradient

        logits, y, nodes, class_weight = ctx.saved_tensors
        return gradient(gradients[0], logits, y, nodes, ctx.divisor, class_weight), None, None, None, None
