"""Accuracy and macro-F1."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Scores(NamedTuple):
    """How well a set of nodes is predicted."""

    accuracy: float
    macro_f1: float


def score(predicted: Tensor, y: Tensor, num_classes: int) -> Scores | None:
    """Accuracy, and the mean of the F1 of every class that is there or was predicted; None for no nodes.

    Shapes: both `[n]`. The same as scikit-learn's, computed where the tensors lie.
    """
    if y.numel() == 0:
        return None
    pairs = torch.bincount(y * num_classes + predicted, minlength=num_classes**2).view(num_classes, num_classes)
    right, there, guessed = pairs.diagonal().double(), pairs.sum(1).double(), pairs.sum(0).double()
    seen = (there + guessed) > 0
    f1 = 2 * right[seen] / (there + guessed)[seen]
    return Scores(accuracy=float(right.sum() / y.numel()), macro_f1=float(f1.mean()))
