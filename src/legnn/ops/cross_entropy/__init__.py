"""The cross-entropy of some nodes, and how many of them are predicted right."""

from __future__ import annotations

from torch import Tensor

from legnn.ops import select
from legnn.ops.cross_entropy import reference
from legnn.ops.cross_entropy.autograd import CrossEntropyFunction
from legnn.ops.cross_entropy.reference import CrossEntropy
from legnn.ops.runtime.gradients import apply_function

MOST_CLASSES = 2**13
"""Columns that one program of a GPU holds at once."""


def mean_cross_entropy(
    logits: Tensor, y: Tensor, nodes: Tensor | None, divisor: float, class_weight: Tensor | None = None
) -> CrossEntropy:
    """`1/divisor Σ_i w_{y_i} CE(y_i, softmax(logits_i))` over the `nodes` `[n]`, each once, or over all rows.

    Shapes: `logits` `[M, C]`, `y` `[M]`, `class_weight` `[C]`, of ones if not given.
    """
    # four launches in the place of some twenty, forward and backward
    if has_kernels(logits):
        loss, numbers = apply_function(
            CrossEntropyFunction, logits, y.contiguous(), nodes, divisor, class_weight, False
        )
        return CrossEntropy(loss, numbers[:2], numbers[2])
    return reference.mean_cross_entropy(logits, y, nodes, divisor, class_weight)


def weighted_cross_entropy(logits: Tensor, y: Tensor, rows: Tensor | None, weight: Tensor) -> Tensor:
    """`Σ_i w_i CE(y_i, softmax(logits_i))` over the `rows` `[n]` of `logits` `[M, C]`, each once, or over all.

    Shapes: `y` and `weight` `[n]`, of which no gradient is taken.
    """
    if has_kernels(logits):
        y, weight = y.contiguous(), weight.contiguous()
        return apply_function(CrossEntropyFunction, logits, y, rows, 1.0, weight, True)[0]
    return reference.weighted_cross_entropy(logits, y, rows, weight)


def has_kernels(logits: Tensor) -> bool:
    """Whether kernels of ours read these logits `[M, C]`: those of a GPU, with few enough classes."""
    return select.kernels_for(logits) is select.TRITON and logits.size(1) <= MOST_CLASSES
