"""Scratch memory of the size of the graph, used by one sample at a time and cached for the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency


@contextmanager
def borrow_zeros(adjacency: Adjacency) -> Iterator[Tensor]:
    """Yields int32 zeros `[cols]` for one thread, which must be zeros again at the end; an error discards them."""
    device = adjacency.col.device
    # by stream: on another one the next sample could begin before the last one's kernels have run
    stream = torch.get_device_module(device).current_stream(device)
    pool: list[Tensor] = adjacency.cached(("zeros for a sample", stream), list)
    try:
        zeros = pool.pop()
    except IndexError:
        zeros = torch.zeros(adjacency.num_cols, dtype=torch.int32, device=device)
    yield zeros
    pool.append(zeros)
