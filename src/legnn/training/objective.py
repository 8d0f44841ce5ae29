"""The training objective: training node selection, the supervised loss, and that of pseudo labels.

`L = 1/|L̃| Σ_{i ∈ L̃} CE(y_i, ŷ_i) + λ TC / |U'| Σ_{i ∈ U'} EC_i CE(ỹ_i, ŷ_i)`

A step of a full batch or of mini-batches has both terms, computed by the same `Objective.losses`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from legnn.graph import TrainingNodeSelection, select_training_nodes
from legnn.graph.selection import predicted_count
from legnn.training.ranks import SINGLE_PROCESS, Ranks
from legnn.training.self_training import ASTrain, PseudoLabels


class Candidates(NamedTuple):
    """The candidates of a step, and what the model predicts for them."""

    nodes: Tensor
    """`[U]`."""
    logits: Tensor
    """`[U, C]`."""
    truth: Tensor
    """`[U]` their classes, -1 where unknown: for the log alone, nothing learns from them."""


class StepLosses(NamedTuple):
    """The loss of a step, and what is logged with it."""

    supervised: Tensor
    """The mean over the predicted nodes."""
    pseudo: Tensor | None
    """`λ TC` times the mean of `EC_i CE_i` over the pseudo labels; None where the step has no candidates."""
    sums: dict[str, Tensor]
    """Logged numbers, by the names in `metrics.SUMS`."""

    @property
    def total(self) -> Tensor:
        """The sum of both terms."""
        return self.supervised if self.pseudo is None else self.supervised + self.pseudo  # eq. 19: both terms


def balanced_class_weight(y: Tensor, num_classes: int) -> Tensor:
    """`[C]` `n / (C' n_c)` for labels `y` `[n]`, `C'` of whose classes occur: of mean 1, and the same sum a class."""
    number = torch.bincount(y, minlength=num_classes)
    occurs = number > 0
    return occurs * y.numel() / (occurs.sum().clamp(min=1) * number.clamp(min=1))


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The losses and nodes of an epoch, for full batches and mini-batches alike."""

    alpha: float = 0.5
    """Training node selection rate: the fraction of the training nodes predicted in an epoch."""
    selection: bool = True
    """Whether training nodes are selected; if not, every one shows its label and is predicted."""
    uses_labels: bool = True
    """Whether labels are shown at all."""
    rule: ASTrain | None = None
    """Chooses pseudo labels; None for none."""
    class_weight: Tensor | None = None
    """`[C]` the weight of a training node of each class in the supervised loss; None where all count alike."""

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

    def num_predicted(self, num_train: int) -> int:
        """The number of training nodes that are predicted in an epoch."""
        return predicted_count(num_train, self.alpha) if self.selects_nodes else num_train

    def confidence(self, epoch: int) -> float | None:
        """The training confidence in `epoch`; None without pseudo labels."""
        return None if self.rule is None else self.rule.confidence(epoch)

    def supervised(self, logits: Tensor, y: Tensor, divisor: float) -> Tensor:
        """`1/divisor Σ_i CE(y_i, ŷ_i)` over `logits` `[n, C]`, each times the weight of its class `y` `[n]`."""
        return self._cross_entropy(logits, y).sum() / divisor

    def losses(
        self,
        logits: Tensor,
        y: Tensor,
        candidates: Candidates | None,
        confidence: float | Tensor,
        *,
        num_predicted: int | None = None,
        ranks: Ranks = SINGLE_PROCESS,
    ) -> StepLosses:
        """Both terms of the loss of a step, without synchronization with the device.

        Args:
            logits: `[n, C]` of the predicted nodes.
            y: `[n]` their labels.
            candidates: of the same forward pass; None for no pseudo labels.
            confidence: `TC`.
            num_predicted: predicted nodes of the step over all processes, `n` if not given.
            ranks: the processes that share the step; each gets its `Ranks.share_of_mean`.
        """
        each = self._cross_entropy(logits, y)
        supervised = ranks.share_of_mean(each.sum(), y.numel() if num_predicted is None else num_predicted)
        hits = logits.detach().argmax(-1) == y
        sums = {"supervised_loss": each.double().sum(), "hits": hits.sum()}
        if self.rule is None or candidates is None:
            return StepLosses(supervised, None, sums)
        p, classes = torch.softmax(candidates.logits.detach().float(), -1).max(-1)
        labels = self.rule.select(candidates.nodes, classes, p, confidence)
        pseudo = self.pseudo_loss(candidates.logits, labels, confidence, ranks)
        return StepLosses(supervised, pseudo, {**sums, "pseudo_loss": pseudo, **labels.counts(candidates.truth)})

    def pseudo_loss(
        self, logits: Tensor, labels: PseudoLabels, confidence: float | Tensor, ranks: Ranks = SINGLE_PROCESS
    ) -> Tensor:
        """`λ TC / |U'| Σ_{i ∈ U'} EC_i CE(ỹ_i, ŷ_i)` for the candidates in `labels`, whose `logits` are `[U, C]`."""
        assert self.rule is not None
        # a predicted class has at least the probability 1 / C: no cross-entropy here is infinite, and 0 times it is 0
        # eq. 19: the loss of pseudo labels, weighted by the evaluating confidence
        total = (labels.evaluating_confidence * F.cross_entropy(logits, labels.y, reduction="none")).sum()
        number = ranks.all_reduce(labels.number).clamp(min=1)
        return ranks.share_of_mean(self.rule.loss_weight(confidence) * total, number)

    def _cross_entropy(self, logits: Tensor, y: Tensor) -> Tensor:
        """`[n]`"""
        each = F.cross_entropy(logits, y, reduction="none")
        return each if self.class_weight is None else each * self.class_weight.index_select(0, y)
