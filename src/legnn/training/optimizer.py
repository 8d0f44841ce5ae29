"""Adam as a run uses it, and its learning rate: half a cosine, over the epochs or over the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

FLOOR = 0.01
"""The learning rate ends at this fraction of its first value, as in the published code."""


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


def cosine_lr(done: int, length: int, lr: float) -> float:
    """The learning rate after `done` of `length` epochs or steps: half a cosine from `lr` down to its floor.

    After `length` it stays at the floor, where the published code would rise again.
    """
    progress = min(done, length) / length
    return lr * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * progress)) / 2)


@dataclass(eq=False)
class CosineSchedule:
    """Sets the learning rate of every epoch, or of every step."""

    optimizer: Optimizer
    lr: float
    length: int
    """Epochs or steps over which it falls."""
    by_step: bool = False
    steps: int = 0
    """Steps of the optimizer so far: all that a resumed run needs to know."""

    def __post_init__(self) -> None:
        self.current = self.lr

    def before_epoch(self, epoch: int) -> None:
        """Set the learning rate of `epoch`, from 1, unless every step has its own."""
        if not self.by_step:
            self._set(epoch - 1)

    def before_step(self) -> None:
        """Count the step that follows, and set its learning rate unless it is that of the epoch."""
        if self.by_step:
            self._set(self.steps)
        self.steps += 1

    def _set(self, done: int) -> None:
        self.current = cosine_lr(done, self.length, self.lr)
        set_lr(self.optimizer, self.current)
