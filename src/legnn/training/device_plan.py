"""What training and inference must know of a device; `runs` chooses it, and nothing here asks for a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from legnn.training.memory import host_total_bytes

AT_ONCE_SHARE = 0.25
"""A graph whose inference takes no more than this part of the memory is computed at once, which is faster."""


@dataclass(frozen=True)
class DevicePlan:
    """How a model is computed; the defaults are those of a CPU."""

    capture: bool = False
    """Whether steps are captured as CUDA graphs."""
    streams: bool = False
    """Whether batches are sampled ahead in threads, on CUDA streams of their own."""
    pin: bool = False
    """Whether memory of the host that is copied to the device is pinned."""
    samplers: int = 0
    """Threads that prepare chunks of layer-wise inference; 0 where they are prepared one by one."""
    chunk_bytes: int = 2**25
    """Bytes of one matrix of such a chunk: enough to keep the device busy."""
    at_once_bytes: int = field(default_factory=lambda: int(AT_ONCE_SHARE * host_total_bytes()))
    """Inference that takes no more is computed at once."""
    free_bytes: Callable[[], int] = lambda: 0
    """Memory of the device, if it is not the host's, that may hold the states between layers."""
