"""Adam as a run uses it, and its learning rate."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class Adam(torch.optim.Adam):
    """PyTorch's Adam without its decorators, which import PyTorch's compiler: that takes a second of every start."""

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
    zero_grad = unwrap(torch.optim.Adam.zero_grad)


def make_adam(groups: list[dict[str, Any]], lr: float, *, capture: bool = False) -> Adam:
    """Adam over `Model.parameter_groups`, all parameters in one kernel.

    With `capture`, its steps can be captured in a CUDA graph: they read the learning rate from the device.
    """
    parameters = [parameter for group in groups for parameter in group["params"]]
    if not capture or not parameters:
        return Adam(groups, lr=lr, fused=True)
    return Adam(groups, lr=torch.tensor(lr, device=parameters[0].device), fused=True, capturable=True)


def set_lr(optimizer: Optimizer, lr: float) -> None:
    """Set the learning rate of the next step, in place where a captured step reads it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr
