"""The cross-entropy of some nodes in plain PyTorch."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class CrossEntropy(NamedTuple):
    """The loss of some nodes, and what is logged with it, which has no gradient."""

    loss: Tensor
    """The weighted sum of their cross-entropies over the divisor."""
    sums: Tensor
    """`[2]` in double precision: that sum, and how many have their class as the most probable one."""
    accuracy: Tensor
    """The share of those; NaN without nodes."""


def mean_cross_entropy(
    logits: Tensor, y: Tensor, nodes: Tensor | None, divisor: float, class_weight: Tensor | None
) -> CrossEntropy:
    """See `legnn.ops.mean_cross_entropy`."""
    if nodes is not None:
        logits, y = logits.index_select(0, nodes), y.index_select(0, nodes)
    each = F.cross_entropy(logits, y, reduction="none")
    if class_weight is not None:
        each = each * class_weight.index_select(0, y)
    right = logits.detach().argmax(-1) == y
    sums = torch.stack([each.detach().double().sum(), right.double().sum()])
    return CrossEntropy(each.sum() / divisor, sums, right.float().mean())


def weighted_cross_entropy(logits: Tensor, y: Tensor, rows: Tensor | None, weight: Tensor) -> Tensor:
    """See `legnn.ops.cross_entropy`."""
    logits = logits if rows is None else logits.index_select(0, rows)
    return (weight * F.cross_entropy(logits, y, reduction="none")).sum()
