"""AS-Train, the paper's adaptive self-training: who gets a pseudo label, and how much it counts."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.training.settings import ASTrain


class PseudoLabels(NamedTuple):
    """The pseudo labels of one epoch; none have length zero."""

    nodes: Tensor
    """`[P]` nodes."""
    y: Tensor
    """`[P]` predicted classes."""
    evaluating_confidence: Tensor
    """`[P]` in (0, 1]."""


def training_confidence(epoch: int, delta: float) -> float:
    """`TC = sigmoid(log(e / δ))`, epochs counted from 1."""
    return epoch / (epoch + delta)


@torch.no_grad()
def select_pseudo_labels(logits: Tensor, candidates: Tensor, confidence: float, settings: ASTrain) -> PseudoLabels:
    """Give a pseudo label to each candidate with `p_i · TC > t`, `p_i` its largest probability.

    Shapes: `logits` `[M, C]`, `candidates` `[U]`. `confidence` is `TC` (1 where it is not used).
    """
    p, y = torch.softmax(logits[candidates].float(), -1).max(-1)
    sure = p * confidence > settings.threshold
    evaluating = p[sure] if settings.use_ec else torch.ones_like(p[sure])
    return PseudoLabels(candidates[sure], y[sure], evaluating)


def pseudo_label_loss(logits: Tensor, pseudo: PseudoLabels, confidence: float, weight: float) -> Tensor:
    """`λ · TC / |U'| · Σ_i EC_i · CE(ỹ_i, ŷ_i)`, zero where there are no pseudo labels. `logits` is `[M, C]`."""
    loss = F.cross_entropy(logits[pseudo.nodes], pseudo.y, reduction="none")
    return weight * confidence * (pseudo.evaluating_confidence * loss).sum() / max(pseudo.nodes.numel(), 1)
