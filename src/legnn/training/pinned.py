"""Features in the host's memory that a GPU reads by itself."""

from __future__ import annotations

import weakref
from contextlib import suppress

import torch
from torch import Tensor

from legnn.training.memory import USABLE, host_free_bytes


def register_pinned(values: Tensor) -> bool:
    """Pins the memory of `values` until it is freed, without a copy; returns whether that succeeded.

    `Tensor.pin_memory` would need the same memory again, rounded up to a power of two. Pages of a mapped file become
    memory of the process: where they do not fit, nothing is pinned.
    """
    size = values.nbytes
    if not values.is_contiguous() or size == 0 or size > USABLE * host_free_bytes():
        return False
    runtime, address = torch.cuda.cudart(), values.data_ptr()
    if int(runtime.cudaHostRegister(address, size, 0)) != 0:
        # the next launch of a kernel would report the error as its own
        with suppress(RuntimeError):
            torch.ones(1, device="cuda")
        return False
    weakref.finalize(values, runtime.cudaHostUnregister, address)
    return True
