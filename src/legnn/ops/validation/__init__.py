"""Accuracy, macro-F1 and cross-entropy of the nodes of a split."""

from __future__ import annotations

from torch import Tensor

from legnn.ops import select
from legnn.ops.validation import reference

MOST_CLASSES = 256
"""With more, one program would take long to add up the counts of all classes."""


def validation_metrics(logits: Tensor, y: Tensor, nodes: Tensor | None = None) -> Tensor:
    """`[3]`: accuracy, macro-F1 and mean cross-entropy of the `nodes` `[n]`, or of all rows, in double precision.

    Shapes: `logits` `[M, C]`, of which no gradient is taken, `y` `[M]`. All are NaN for `n = 0`.
    """
    # two launches in the place of some twenty
    if select.kernels_for(logits) is select.TRITON and logits.size(1) <= MOST_CLASSES:
        # Triton takes a moment to import
        from legnn.ops.validation.triton_kernels import launch

        return launch(logits, y.contiguous(), nodes)
    return reference.validation_metrics(logits, y, nodes)
