"""A step of Adam by PyTorch, for parameters of any dtype and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from legnn.ops.adam import AdamTensors


def adam_step(tensors: Sequence[AdamTensors], lr: Tensor, betas: tuple[float, float], eps: float) -> None:
    """See `ops.adam.adam_step`."""
    torch._foreach_add_([one.step for one in tensors], 1)
    for kind in dict.fromkeys((one.parameter.dtype, one.weight_decay) for one in tensors):
        alike = [one for one in tensors if (one.parameter.dtype, one.weight_decay) == kind]
        parameters, gradients, exp_avgs, exp_avg_sqs, steps, _ = map(list, zip(*alike, strict=True))
        torch._fused_adam_(
            parameters, gradients, exp_avgs, exp_avg_sqs, [], steps, lr=lr, beta1=betas[0], beta2=betas[1],
            weight_decay=kind[1], eps=eps, amsgrad=False, maximize=False,
        )  # fmt: skip
