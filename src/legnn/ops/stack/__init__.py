"""A few numbers, some of them on a device, as one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from legnn.ops import select
from legnn.ops.stack import reference

MOST = 8
"""Numbers that one launch takes."""


def stack_scalars(values: Sequence[Tensor | float], device: torch.device) -> Tensor:
    """Returns the `values`, tensors of one number on `device` or numbers, as `[k]` in double precision."""
    # one launch in the place of one for each of them
    if select.kernels_for_device(device) is select.TRITON and len(values) <= MOST:
        # Triton takes a moment to import
        from legnn.ops.stack.triton_kernels import launch

        return launch(values, device)
    return reference.stack_scalars(values, device)
