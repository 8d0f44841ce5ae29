"""What the loop asks of a way to go over the graph, and what it gets back."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor


class Step(NamedTuple):
    """What one epoch of training did, as scalars on the device."""

    supervised_loss: Tensor
    pseudo_loss: Tensor
    train_accuracy: Tensor | None
    """Over the predicted nodes, in the training forward; None where they saw their own labels."""
    training_confidence: float | None
    pseudo_labels: int | None
    pseudo_label_accuracy: Tensor | None
    """Where the truth is known; for the record only, nothing learns from it."""


class Batching(Protocol):
    """How an epoch goes over the graph; the loop does not know."""

    def train_epoch(self, epoch: int) -> Step:
        """Train for one epoch."""
        ...

    def logits(self, shown: Tensor) -> Tensor:
        """`[M, C]` in evaluation mode, the nodes `shown` showing their labels."""
        ...
