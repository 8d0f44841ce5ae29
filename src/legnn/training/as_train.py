"""AS-Train, the paper's adaptive self-training: who gets a pseudo label, and how much it counts.

Every candidate keeps its row, chosen or not, and one that is not counts zero: shapes stay the same from epoch to epoch,
and the host never waits to hear how many were chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.config import SelfTrainingSettings


class PseudoLabels(NamedTuple):
    """The pseudo labels of one epoch: a row for each of the `U` candidates, `U'` of which are chosen."""

    nodes: Tensor
    """`[U]` the candidates."""
    y: Tensor
    """`[U]` predicted classes."""
    chosen: Tensor
    """`[U]` boolean: whether the candidate gets its predicted class as a pseudo label."""
    evaluating_confidence: Tensor
    """`[U]`: `EC` in (0, 1] where chosen, 0 elsewhere."""

    @property
    def number(self) -> Tensor:
        """`|U'|`, a scalar on the device."""
        return self.chosen.sum()


def training_confidence(epoch: int, delta: float) -> float:
    """`TC = sigmoid(log(e / δ))`, epochs counted from 1."""
    return epoch / (epoch + delta)


@torch.no_grad()
def select_pseudo_labels(
    logits: Tensor, candidates: Tensor, confidence: float | Tensor, settings: SelfTrainingSettings
) -> PseudoLabels:
    """Give a pseudo label to each candidate with `p_i · TC > t`, `p_i` its largest probability.

    Shapes: `logits` `[M, C]`, `candidates` `[U]`. `confidence` is `TC`, a number or a scalar on the device (1 where it
    is not used).
    """
    p, y = torch.softmax(logits.index_select(0, candidates).float(), -1).max(-1)
    return pseudo_labels_of(candidates, y, p, confidence, settings)


def pseudo_labels_of(
    candidates: Tensor, y: Tensor, p: Tensor, confidence: float | Tensor, settings: SelfTrainingSettings
) -> PseudoLabels:
    """The same from the most probable class `y` `[U]` of each candidate and its probability `p` `[U]`."""
    chosen = p * confidence > settings.threshold
    evaluating = p if settings.use_ec else torch.ones_like(p)
    return PseudoLabels(candidates, y, chosen, evaluating * chosen)


def pseudo_label_loss(logits: Tensor, pseudo: PseudoLabels, confidence: float | Tensor, weight: float) -> Tensor:
    """`λ · TC / |U'| · Σ_{i ∈ U'} EC_i · CE(ỹ_i, ŷ_i)`, zero where there are no pseudo labels. `logits` is `[M, C]`."""
    # a class that was predicted has at least a probability of 1 / C: no cross-entropy here is infinite, and zero
    # times it is zero
    loss = F.cross_entropy(logits.index_select(0, pseudo.nodes), pseudo.y, reduction="none")
    return weight * confidence * (pseudo.evaluating_confidence * loss).sum() / pseudo.number.clamp(min=1)


def pseudo_label_accuracy(pseudo: PseudoLabels, y: Tensor) -> Tensor:
    """The part of the pseudo labels that is right, of those whose truth is known; NaN where none is known.

    `y` `[M]` holds the truth, -1 where it is unknown. For the record only: nothing learns from it.
    """
    truth = y.index_select(0, pseudo.nodes)
    known = pseudo.chosen & (truth >= 0)
    return (known & (pseudo.y == truth)).sum() / known.sum()
