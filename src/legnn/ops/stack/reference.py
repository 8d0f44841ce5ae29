"""A few numbers as one vector, in plain PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def stack_scalars(values: Sequence[Tensor | float], device: torch.device) -> Tensor:
    """See `legnn.ops.stack`."""

    def to_double(value: Tensor | float) -> Tensor:
        if isinstance(value, Tensor):
            return value.double()
        # filled on the device: a copy from the host could not be captured
        return torch.full((), value, dtype=torch.double, device=device)

    return torch.stack([to_double(value) for value in values])
