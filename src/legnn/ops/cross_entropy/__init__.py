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
    # three launches in the place of some twenty, forward and backward
    if select.kernels_for(logits) is select.TRITON and logits.size(1) <= MOST_CLASSES:
        loss, numbers = apply_function(CrossEntropyFunction, logits, y, nodes, divisor, class_weight)
        return CrossEntropy(loss, numbers[:2], numbers[2])
    return reference.mean_cross_entropy(logits, y, nodes, divisor, class_weight)
