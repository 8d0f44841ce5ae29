"""How many pseudo labels are right, where that is known."""

from __future__ import annotations

from torch import Tensor

from legnn.ops import select
from legnn.ops.pseudo_labels import reference


def count_known_and_right(
    y: Tensor, chosen: Tensor, truth: Tensor, rows: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """How many of the `chosen` `[n]` have a known class (not -1), and of how many that is `y` `[n]`; scalars.

    Shapes: `truth` `[n]`, or `[M]` with the `rows` `[n]` to compare.
    """
    # two launches in the place of seven
    if select.kernels_for_device(y.device) is select.TRITON:
        # Triton takes a moment to import
        from legnn.ops.pseudo_labels.triton_kernels import launch

        return launch(y.contiguous(), chosen.contiguous(), truth.contiguous(), rows)
    return reference.count_known_and_right(y, chosen, truth, rows)
