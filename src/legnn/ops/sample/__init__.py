"""Neighbor sampling: uniform, without replacement, at most `fanout` edges of each row.

Which edges are drawn is a hash of a key, the row and the position, as dropout masks are: the same on every device and
for every distribution of the seeds over processes, and a checkpoint has no state of it to keep. `reference` is plain
PyTorch, and `numba_kernels` (CPU) and `triton_kernels` (CUDA) draw the same edges; the three differ in how they number
the nodes that are not seeds.
"""

from __future__ import annotations

import torch

from legnn.ops.sample.reference import ReferenceSampler
from legnn.ops.sample.types import Fanout, Sampler
from legnn.ops.select import kernels_for_device

__all__ = ["Fanout", "Sampler", "sampler_for"]


def sampler_for(device: torch.device) -> type[Sampler]:
    """Returns the fastest sampler for a device."""
    kernels = kernels_for_device(device)
    return ReferenceSampler if kernels is None else kernels.sampler
