"""Batches prepared in a thread while the one before is trained on, so that the device does not idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

AHEAD = 2
"""Batches that are ready, beside the one that is trained on and the one that is prepared."""


def prefetch(items: Iterable[T], device: torch.device, tensors: Callable[[T], Iterable[Tensor]]) -> Iterator[T]:
    """Yields `items` in order, prepared in a thread on a CUDA stream of its own; its errors are raised here.

    On a CPU they are prepared one by one as they are consumed: there are no other cores to prepare them on. `tensors`
    gives those of an item that the device reads.
    """
    if device.type != "cuda":
        yield from items
        return
    # its short kernels, whose sizes a thread waits for, go before the long ones of training
    stream, iterator = torch.cuda.Stream(device, priority=-1), iter(items)
    stream.wait_stream(torch.cuda.current_stream(device))

    def prepare() -> tuple[T | None, torch.cuda.Event]:
        with torch.cuda.stream(stream):
            return next(iterator, None), stream.record_event()

    pool = ThreadPoolExecutor(1, "legnn-prefetch")
    try:
        ready = deque(pool.submit(prepare) for _ in range(AHEAD + 1))
        while True:
            item, done = ready.popleft().result()
            if item is None:
                return
            ready.append(pool.submit(prepare))
            current = torch.cuda.current_stream(device)
            current.wait_event(done)
            for tensor in tensors(item):
                # or the allocator would give its memory to the next batch while this one is still read
                tensor.record_stream(current)
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
