"""Which epoch is the best, and when no better one is expected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Ties = Literal["loss", "latest"]
"""Which of equally good epochs is the best: the one with the smaller loss, or the latest."""


@dataclass
class EarlyStopping:
    """Keeps the best epoch by a score of validation, such as its accuracy; without validation, the latest."""

    patience: int
    ties: Ties = "loss"
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf

    def improves(self, epoch: int, score: float | None, loss: float | None) -> bool:
        """Record an epoch; returns whether it is the best so far."""
        if score is None or loss is None:
            self.best_epoch = epoch
            return True
        better = score > self.best_score
        if score == self.best_score:
            better = self.ties == "latest" or loss < self.best_loss
        if better:
            self.best_epoch, self.best_score, self.best_loss = epoch, score, loss
        return better

    def is_over(self, epoch: int) -> bool:
        """Whether no epoch was better for `patience` epochs."""
        return epoch - self.best_epoch >= self.patience
