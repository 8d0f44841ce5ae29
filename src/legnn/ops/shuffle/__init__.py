"""Random orders on a GPU without sorting: each place computes which value it gets."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from legnn.ops import select
from legnn.ops.shuffle.reference import LEAST


def shuffle(values: Tensor, draw: Generator | Tensor) -> Tensor:
    """Returns `values` `[n]` in random order, by a generator or by a key of two 32-bit words, on a GPU beside them.

    `torch.randperm` sorts random numbers, which takes a GPU some ten launches.
    """
    # Triton takes a moment to import
    if isinstance(draw, Tensor):
        from legnn.ops.shuffle.triton_kernels import launch

        return launch(values, draw)
    number = values.numel()
    if number < LEAST or draw.device.type != "cuda" or select.kernels_for_device(values.device) is not select.TRITON:
        order = torch.randperm(number, generator=draw, device=draw.device)
        return values.index_select(0, order.to(values.device))
    from legnn.ops.shuffle.triton_kernels import launch

    return launch(values, torch.randint(2**32, (2,), generator=draw, device=draw.device))
