"""The training objective: training node selection, the supervised loss, and that of pseudo labels.

`L = 1/|L̃| Σ_{i ∈ L̃} CE(y_i, ŷ_i) + λ TC / |U'| Σ_{i ∈ U'} EC_i CE(ỹ_i, ŷ_i)`

Full batches add both terms in one step; mini-batches take the steps of the second after those of the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from legnn.config import SelfTrainingSettings
from legnn.graph import TrainingNodeSelection, select_training_nodes
from legnn.training.inference import to_probabilities
from legnn.training.protocols import SelfTrainingRule, TrainMetrics
from legnn.training.task import Task


class PseudoLabels(NamedTuple):
    """Pseudo labels of one epoch: a row for each of the `U` candidates, so that shapes stay the same in every epoch."""

    nodes: Tensor
    """`[U]` the candidates."""
    y: Tensor
    """`[U]` predicted classes."""
    chosen: Tensor
    """`[U]` bool: whether the candidate is in `U'` and gets its predicted class as a pseudo label."""
    evaluating_confidence: Tensor
    """`[U]`: `EC` in (0, 1] where chosen, 0 elsewhere."""

    @property
    def number(self) -> Tensor:
        """`|U'|`, a scalar on the device."""
        return self.chosen.sum()

    def accuracy(self, y: Tensor) -> Tensor:
        """The fraction that is right among those whose truth in `y` `[M]` is known (not -1); NaN where none is."""
        truth = y.index_select(0, self.nodes)
        known = self.chosen & (truth >= 0)
        return (known & (self.y == truth)).sum() / known.sum()


def training_confidence(epoch: int, delta: float) -> float:
    """`TC = sigmoid(log(e / δ))`, epochs counted from 1."""
    return epoch / (epoch + delta)


@dataclass(frozen=True)
class ASTrain:
    """The paper's adaptive self-training: a pseudo label for each candidate with `p_i · TC > t`, weighted by `p_i`."""

    settings: SelfTrainingSettings
    """`t` is its `threshold`, `δ` its `delta` and `λ` its `weight`."""

    def confidence(self, epoch: int) -> float:
        """`TC`."""
        return training_confidence(epoch, self.settings.delta) if self.settings.use_tc else 1.0

    def can_choose(self, confidence: float) -> bool:
        """Whether a probability of 1 would pass."""
        return confidence > self.settings.threshold

    def choose(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> PseudoLabels:
        """`ỹ_i = y_i` and `EC_i = p_i` where `p_i · TC > t`; all `[U]`."""
        chosen = p * confidence > self.settings.threshold
        evaluating = p if self.settings.use_ec else torch.ones_like(p)
        return PseudoLabels(nodes, y, chosen, evaluating * chosen)

    def loss_weight(self, confidence: Any) -> Any:
        """`λ · TC`."""
        return self.settings.weight * confidence


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What an epoch trains on, for full batches and mini-batches alike."""

    alpha: float = 0.5
    """Training node selection rate: the fraction of the training nodes predicted in an epoch."""
    selection: bool = True
    """Whether training nodes are selected; if not, every one shows its label and is predicted."""
    uses_labels: bool = True
    """Whether labels are shown at all."""
    rule: SelfTrainingRule | None = None
    """Chooses pseudo labels; None for none."""

    @property
    def selects_nodes(self) -> bool:
        """Whether other nodes are predicted in each epoch."""
        return self.uses_labels and self.selection

    @property
    def shows_predicted(self) -> bool:
        """Whether predicted nodes show their labels."""
        return self.uses_labels and not self.selection

    def select(self, train: Tensor, generator: Generator) -> TrainingNodeSelection:
        """The training nodes that are predicted in this epoch, and those that show their labels."""
        if self.selects_nodes:
            return select_training_nodes(train, self.alpha, generator)
        return TrainingNodeSelection(predicted=train, shown=train if self.uses_labels else train[:0])

    def confidence(self, epoch: int) -> float | None:
        """The training confidence in `epoch`; None without pseudo labels."""
        return None if self.rule is None else self.rule.confidence(epoch)

    def node_losses(self, logits: Tensor, y: Tensor) -> Tensor:
        """`[n]` the cross-entropy of each of `n` nodes."""
        return F.cross_entropy(logits, y, reduction="none")

    def losses(self, logits: Tensor, predicted: Tensor, task: Task, confidence: Tensor) -> TrainMetrics:
        """Both terms of the loss for `logits` `[M, C]`, and what is logged with them, without synchronization."""
        mine, truth = logits.index_select(0, predicted), task.y.index_select(0, predicted)
        supervised = self.node_losses(mine, truth).mean()
        nan = torch.full_like(supervised, math.nan)
        accuracy = nan if self.shows_predicted else (mine.detach().argmax(-1) == truth).float().mean()
        if self.rule is None:
            return TrainMetrics(supervised, torch.zeros_like(supervised), accuracy, nan, nan)
        others = logits.index_select(0, task.candidates)
        p, y = to_probabilities(others.detach()).max(-1)
        pseudo = self.rule.choose(task.candidates, y, p, confidence)
        # a predicted class has at least the probability 1 / C: no cross-entropy here is infinite, and 0 times it is 0
        total = (pseudo.evaluating_confidence * self.node_losses(others, y)).sum()
        pseudo_loss = self.rule.loss_weight(confidence) * total / pseudo.number.clamp(min=1)
        return TrainMetrics(supervised, pseudo_loss, accuracy, pseudo.number, pseudo.accuracy(task.y))
