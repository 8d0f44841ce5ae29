"""How many pseudo labels are right, in plain PyTorch."""

from __future__ import annotations

from torch import Tensor


def count_known_and_right(y: Tensor, chosen: Tensor, truth: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """See `legnn.ops.pseudo_labels`."""
    truth = truth if rows is None else truth.index_select(0, rows)
    known = chosen & (truth >= 0)
    return known.sum(), (known & (y == truth)).sum()
