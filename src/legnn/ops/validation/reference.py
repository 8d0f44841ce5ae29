"""Accuracy, macro-F1 and cross-entropy in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def accuracy_and_macro_f1(predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """`[2]`: accuracy, and the mean F1 of the classes that occur in `y` or `predicted`, both `[n]`; NaN for `n = 0`.

    `F1_c = 2 TP_c / (2 TP_c + FP_c + FN_c)`. Equal to scikit-learn's, in double precision, without synchronization.
    """

    def count(classes: Tensor, counted: Tensor) -> Tensor:
        # integer counting is exact and does not depend on order, so it is deterministic on every device
        return torch.zeros(num_classes, dtype=torch.long, device=y.device).index_add(0, classes, counted)

    hit, each = (predicted == y).long(), torch.ones_like(y)
    right, either = count(y, hit), count(y, each) + count(predicted, each)
    # a class that does not occur adds 0 / 1 and is not counted
    f1 = (2 * right).double() / either.clamp(min=1)
    return torch.stack([hit.sum().double() / y.numel(), f1.sum() / (either > 0).sum()])


def validation_metrics(logits: Tensor, y: Tensor, nodes: Tensor | None) -> Tensor:
    """See `legnn.ops.validation`."""
    if nodes is not None:
        logits, y = logits.index_select(0, nodes), y.index_select(0, nodes)
    scores = accuracy_and_macro_f1(logits.argmax(-1), y, logits.size(1))
    return torch.cat([scores, F.cross_entropy(logits.float(), y).double()[None]])
