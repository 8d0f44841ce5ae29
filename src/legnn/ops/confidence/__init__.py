"""The most probable class of some nodes, and its probability."""

from __future__ import annotations

from torch import Tensor

from legnn.ops.confidence import reference
from legnn.ops.cross_entropy import has_kernels


def most_probable(logits: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Returns the largest probability of each of the `rows` `[n]` of `logits` `[M, C]`, or of all, and its class."""
    # one launch in the place of four
    if has_kernels(logits):
        # Triton takes a moment to import
        from legnn.ops.confidence.triton_kernels import launch

        return launch(logits, rows)
    return reference.most_probable(logits, rows)
