"""Scratch memory of the size of the graph, used by one sample at a time and kept for the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency

_lock = threading.Lock()
_kept: WeakKeyDictionary[Adjacency, dict[int, list[Tensor]]] = WeakKeyDictionary()


@contextmanager
def borrow_zeros(adjacency: Adjacency) -> Iterator[Tensor]:
    """Yields int32 zeros `[cols]` for one thread, which must be zeros again at the end; an error discards them."""
    device = adjacency.col.device
    # by stream: on another one the next sample could begin before the last one's kernels have run
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    with _lock:
        free = _kept.setdefault(adjacency, {}).setdefault(stream, [])
        zeros = free.pop() if free else None
    if zeros is None:
        size = adjacency.num_cols
        if device.type == "cpu":
            # NumPy's zeros take memory only where they are written to
            zeros = torch.from_numpy(np.zeros(size, np.int32))
        else:
            zeros = torch.zeros(size, dtype=torch.int32, device=device)
    yield zeros
    with _lock:
        free.append(zeros)
