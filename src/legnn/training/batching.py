"""What the loop asks of a way to go over the graph, and what it gets back.

What comes back are scalars on the device, in double precision so that nothing is rounded when they travel together. The
loop brings them over in one transfer, the only time in an epoch that the host waits. They may be overwritten by the
next call.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Step(NamedTuple):
    """What one epoch of training did."""

    supervised_loss: Tensor
    pseudo_loss: Tensor
    train_accuracy: Tensor | None
    """Over the predicted nodes, in the training forward; None where they saw their own labels."""
    training_confidence: float | None
    """A function of the epoch, so the host knows it anyway."""
    pseudo_labels: Tensor | None
    """How many there were."""
    pseudo_label_accuracy: Tensor | None
    """Where the truth is known, NaN where none is; for the record only, nothing learns from it."""


class Validation(NamedTuple):
    """How well the validation nodes are predicted."""

    accuracy: Tensor
    macro_f1: Tensor
    loss: Tensor


def class_and_confidence(logits: Tensor) -> Tensor:
    """`[n, 2]` the most probable class of each row of `logits` `[n, C]` and its probability, in double precision."""
    p, y = torch.softmax(logits.float(), -1).max(-1)
    return torch.stack([y.double(), p.double()], 1)


class Batching(Protocol):
    """How an epoch goes over the graph; the loop does not know."""

    def train_epoch(self, epoch: int) -> Step:
        """Train for one epoch."""
        ...

    def validate(self, shown: Tensor) -> Validation:
        """Score the validation nodes in evaluation mode, the nodes `shown` showing their labels."""
        ...

    def predict(self, shown: Tensor, nodes: Tensor) -> Tensor:
        """`[n, 2]` class and confidence of `nodes` in evaluation mode, the nodes `shown` showing their labels."""
        ...

    def reset(self) -> None:
        """Let go of what was kept for the next epochs: training is over, or goes on from a state that was loaded."""
        ...
