"""Accuracy and macro-F1."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from legnn.ops.validation.reference import accuracy_and_macro_f1


@dataclass(frozen=True)
class Scores:
    """How well a set of nodes is predicted."""

    accuracy: float
    macro_f1: float


def score(predicted: Tensor, y: Tensor, num_classes: int) -> Scores | None:
    """`accuracy_and_macro_f1` as numbers; None for no nodes."""
    return None if y.numel() == 0 else Scores(*accuracy_and_macro_f1(predicted, y, num_classes).tolist())
