"""Choices of training and inference that depend on the device; `runs` makes them, nothing here asks for a device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class DevicePlan:
    """Choices for one device; the defaults are those of a CPU with memory for everything."""

    capture: bool = False
    """Whether steps are captured as CUDA graphs."""
    streams: bool = False
    """Whether batches are sampled ahead in threads, on CUDA streams of their own."""
    pin: bool = False
    """Whether memory of the host that is copied to the device is pinned."""
    samplers: int = 0
    """Threads that prepare chunks of layer-wise inference; 0 where they are prepared one by one."""
    at_once: bool = True
    """Whether inference fits at once, which is faster; otherwise it is computed layer by layer, in chunks."""
    chunk_bytes: int = 2**25
    """Bytes of one matrix of such a chunk: enough to keep the device busy."""
    free_bytes: Callable[[], int] = lambda: 0
    """Memory of the device, if it is not the host's, that may store the states between layers."""
    host_bytes: Callable[[], int] = lambda: sys.maxsize
    """Memory of the host that is free; states that would take too much of it are stored on disk."""
