"""Neighbor sampling: uniform, without replacement, at most `fanout` edges of each row.

Which edges are drawn is a hash of a key, the row and the position, as dropout masks are: the same on every device and
for every distribution of the seeds over processes, and a checkpoint has no state of it to keep. `reference` is plain
PyTorch, and `numba_kernels` (CPU) and `triton_kernels` (CUDA) draw the same edges; the three differ in how they number
the nodes that are not seeds.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import torch

from legnn.ops.sample.types import Fanout, Sampler

__all__ = ["Fanout", "Sampler", "sampling_kernels"]


@lru_cache
def sampling_kernels(device: torch.device) -> type[Sampler]:
    """Return the fastest sampler for a device."""
    # imported here: numba and Triton take a moment to import, and not every command samples
    if device.type == "cpu":
        from legnn.ops.sample.numba_kernels import NumbaSampler

        return NumbaSampler
    from legnn.ops.sample.reference import ReferenceSampler

    if device.type == "cuda":
        try:
            from legnn.ops.sample.triton_kernels import TritonSampler
        except ImportError as error:
            warnings.warn(f"Triton is missing ({error}): sampling on this GPU is slow", stacklevel=2)
        else:
            return TritonSampler
    return ReferenceSampler
