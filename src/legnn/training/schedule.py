"""The learning rate: half a cosine, over the epochs or over the steps of the optimizer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch.optim import Optimizer

from legnn.training.optimizer import set_lr

FLOOR = 0.01
"""The learning rate ends at this fraction of its first value, as in the published code."""


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
