"""Memory of the size of the graph, lent to one sample at a time and kept for the next."""

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
def places(adjacency: Adjacency) -> Iterator[Tensor]:
    """`[nodes]` int32, all zero, to be handed back all zero.

    Each thread that samples at the same time gets one of its own. Where something went wrong it is not kept.
    """
    device = adjacency.col.device
    # on a GPU the next to take it must come after the last on the same stream: what that one has queued may still run
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    with _lock:
        free = _kept.setdefault(adjacency, {}).setdefault(stream, [])
        place = free.pop() if free else None
    if place is None:
        size = adjacency.num_cols
        # NumPy's zeros are pages that come into being when they are first written to
        on_cpu = device.type == "cpu"
        place = (
            torch.from_numpy(np.zeros(size, np.int32))
            if on_cpu
            else torch.zeros(size, dtype=torch.int32, device=device)
        )
    yield place
    with _lock:
        free.append(place)
