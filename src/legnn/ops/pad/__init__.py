"""Padding of samples to fixed sizes: where nodes are moved to, and the edges between them.

`reference` is plain PyTorch, a hundred small operations for a sample of three layers; `triton_kernels` writes the same
values on a GPU by a few kernels, since the thread that launches them is what training waits for.
"""

from __future__ import annotations

import torch

from legnn.ops import select
from legnn.ops.pad import reference
from legnn.ops.pad.types import NodeGroup, NodeValues, PaddingKernels, RowSizes, SampledRows

__all__ = ["NodeGroup", "NodeValues", "RowSizes", "SampledRows", "padding_for"]


def padding_for(device: torch.device) -> PaddingKernels:
    """Returns the fastest padding for a device."""
    if select.kernels_for_device(device) is not select.TRITON:
        return reference
    # Triton takes a moment to import
    from legnn.ops.pad import triton_kernels

    return triton_kernels
