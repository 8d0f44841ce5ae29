"""Accuracy and macro-F1."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Scores(NamedTuple):
    """How well a set of nodes is predicted."""

    accuracy: float
    macro_f1: float


def measure(predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """`[2]`: accuracy, and the mean of the F1 of every class that is there or was predicted; NaN for no nodes.

    Shapes: both `[n]`. The same as scikit-learn's, in double precision, and the host waits for nothing. With `r_c`
    right, `t_c` there and `g_c` guessed, `F1_c = 2 r_c / (t_c + g_c)`.
    """

    def count(classes: Tensor, counted: Tensor) -> Tensor:
        # integer counting is exact and does not depend on order, so it is deterministic on every device
        return torch.zeros(num_classes, dtype=torch.long, device=y.device).index_add(0, classes, counted)

    hit, each = (predicted == y).long(), torch.ones_like(y)
    right, either = count(y, hit), count(y, each) + count(predicted, each)
    # a class nobody has and nobody guessed adds 0 / 1 and is not counted
    f1 = (2 * right).double() / either.clamp(min=1)
    return torch.stack([hit.sum().double() / y.numel(), f1.sum() / (either > 0).sum()])


def score(predicted: Tensor, y: Tensor, num_classes: int) -> Scores | None:
    """What `measure` gives, as numbers; None for no nodes."""
    return None if y.numel() == 0 else Scores(*measure(predicted, y, num_classes).tolist())
