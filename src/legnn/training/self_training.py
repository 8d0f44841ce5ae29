"""Rules of self-training: which candidates get a pseudo label, and how much it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from legnn.config import SelfTrainingSettings


class PseudoLabels(NamedTuple):
    """Pseudo labels of a step: a row for each of the `U` candidates, so that shapes are always the same."""

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

    def counts(self, truth: Tensor) -> dict[str, Tensor]:
        """`|U'|`, how many of them have a known `truth` `[U]` (not -1), and how many are right."""
        known = self.chosen & (truth >= 0)
        right = (known & (self.y == truth)).sum()
        return {"pseudo_labels": self.number, "known_pseudo_labels": known.sum(), "right_pseudo_labels": right}

    def take(self, index: Tensor) -> PseudoLabels:
        """Some of the rows."""
        return PseudoLabels(*(values[index] for values in self))


def training_confidence(epoch: int, delta: float) -> float:
    """`TC = sigmoid(log(e / δ))`, epochs counted from 1."""
    return epoch / (epoch + delta)  # eq. 17: training confidence


@dataclass(frozen=True)
class ASTrain:
    """The paper's adaptive self-training: a pseudo label for each candidate with `p_i · TC > t`, weighted by `p_i`."""

    settings: SelfTrainingSettings
    """`t` is `pseudo_label_threshold`, `δ` is `delta` and `λ` is `pseudo_label_weight`."""

    def confidence(self, epoch: int) -> float:
        """`TC` in `epoch`, from 1."""
        return training_confidence(epoch, self.settings.delta) if self.settings.use_tc else 1.0

    def may_select(self, confidence: float) -> bool:
        """Whether any candidate can get a pseudo label; where none can, mini-batches do not sample them."""
        return confidence > self.settings.pseudo_label_threshold

    def is_confident(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> Tensor:
        """`[U]` bool: the candidates that get a pseudo label, those with `p_i · TC > t`."""
        return p * confidence > self.settings.pseudo_label_threshold  # eq. 18: pseudo labels

    def select(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> PseudoLabels:
        """`ỹ_i = y_i` and `EC_i = p_i` where `is_confident`; all `[U]`, the candidates of a step in one process."""
        chosen = self.is_confident(nodes, y, p, confidence)
        evaluating = p if self.settings.use_ec else torch.ones_like(p)
        return PseudoLabels(nodes, y, chosen, evaluating * chosen)

    def loss_weight(self, confidence: Any) -> Any:
        """`λ · TC`."""
        return self.settings.pseudo_label_weight * confidence


class TopK(ASTrain):
    """A pseudo label for the `per_class` most confident candidates of each predicted class, without a threshold."""

    def may_select(self, confidence: float) -> bool:
        """Whether a pseudo label would count at all."""
        return confidence > 0

    def is_confident(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> Tensor:
        """`[U]` bool: `rank_i < per_class`, the rank by `p_i` among candidates of the same `y_i`, ties by position."""
        # two stable sorts: by probability, then by class, so that the members of a class lie together, the surest first
        order = p.argsort(descending=True, stable=True)
        order = order[y[order].argsort(stable=True)]
        classes = y[order]
        rank = torch.arange(classes.numel(), device=classes.device) - torch.searchsorted(classes, classes)
        return torch.zeros_like(y, dtype=torch.bool).index_copy(0, order, rank < self.settings.per_class)


@dataclass(frozen=True)
class Agreement(ASTrain):
    """A pseudo label for each candidate with `p_i · TC > t` whose class a second model predicts too.

    Li et al. (2018) train a GCN together with a random walk from the labels; here the second model is one that does
    not change, such as label propagation from the training labels. A candidate is never a training node, so its own
    label is in neither opinion.
    """

    opinions: Tensor
    """`[M]` the class that the second model predicts of each node, -1 where it has none."""

    def is_confident(self, nodes: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor) -> Tensor:
        """`[U]` bool: `p_i · TC > t` and `y_i = opinions_i`."""
        return super().is_confident(nodes, y, p, confidence) & (y == self.opinions.index_select(0, nodes))
