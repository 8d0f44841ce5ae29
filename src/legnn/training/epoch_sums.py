"""Metrics of an epoch of many steps, summed up on the device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from legnn.training.objective import PseudoLabels, StepLosses
from legnn.training.protocols import TrainMetrics
from legnn.training.ranks import Ranks


class EpochSums:
    """Sums over the steps of an epoch, in double precision and without synchronization."""

    def __init__(self, device: torch.device, ranks: Ranks) -> None:
        self.ranks = ranks
        self._predicted = torch.zeros(2, dtype=torch.double, device=device)
        self._pseudo_loss = torch.zeros((), dtype=torch.double, device=device)
        self._labels = torch.zeros(3, dtype=torch.double, device=device)

    def zero(self) -> None:
        """Begin an epoch; the sums stay where captured steps add to them."""
        for sums in (self._predicted, self._pseudo_loss, self._labels):
            sums.zero_()

    def add(self, losses: StepLosses, candidate_y: Tensor) -> None:
        """Add a step of this process; `candidate_y` `[u]` are the true classes of its candidates."""
        self._predicted += losses.sums
        if losses.labels is not None and losses.pseudo is not None:
            self.add_pseudo_loss(losses.pseudo)
            self.add_pseudo_labels(losses.labels, candidate_y)

    def add_pseudo_loss(self, loss: Tensor) -> None:
        """Add the loss of the pseudo labels of a step."""
        self._pseudo_loss += loss.detach()

    def add_pseudo_labels(self, labels: PseudoLabels, truth: Tensor) -> None:
        """Add pseudo labels of this process, with the true classes `[u]` of their candidates."""
        self._labels += torch.stack([labels.number, *labels.known_and_right(truth)])

    def metrics(self, num_predicted: int, pseudo_steps: int, *, self_training: bool) -> TrainMetrics:
        """The means over `num_predicted` nodes and `pseudo_steps` steps, of all processes."""
        sums = self.ranks.all_reduce(torch.cat([self._predicted, self._pseudo_loss[None], self._labels]))
        loss, accuracy = (sums[:2] / num_predicted).unbind()
        # the loss of a step is the average of those of the processes
        pseudo_loss = sums[2] / (max(pseudo_steps, 1) * self.ranks.world_size)
        number, known, right = sums[3:].unbind()
        nan = torch.full_like(loss, math.nan)
        if not self_training:
            return TrainMetrics(loss, pseudo_loss, accuracy, nan, nan)
        return TrainMetrics(loss, pseudo_loss, accuracy, number, right / known)
