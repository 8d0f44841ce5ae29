"""Random orders on a GPU without sorting: each place computes which value it gets."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from legnn.ops import select
from legnn.ops.shuffle.reference import LEAST


def shuffle(values: Tensor, generator: Generator) -> Tensor:
    """Returns `values` `[n]` in random order, drawn on the generator's device, which should be that of the values.

    `torch.randperm` sorts random numbers, which takes a GPU some ten launches.
    """
    number = values.numel()
    if (
        number < LEAST
        or generator.device.type != "cuda"
        or select.kernels_for_device(values.device) is not select.TRITON
    ):
        order = torch.randperm(number, generator=generator, device=generator.device)
        return values.index_select(0, order.to(values.device))
    # Triton takes a moment to import
    from legnn.ops.shuffle.triton_kernels import launch

    return launch(values, torch.randint(2**32, (2,), generator=generator, device=generator.device))
