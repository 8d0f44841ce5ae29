"""Batches prepared in a thread while the one before is trained on, so that the device does not idle."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

AHEAD = 2
"""Batches in the queue, beside the one that is trained on and the one that is prepared."""


def prefetch(items: Iterable[T], device: torch.device, tensors: Callable[[T], Iterable[Tensor]]) -> Iterator[T]:
    """Yields `items` in order, prepared in a thread on a CUDA stream of its own; its errors are raised here.

    On a CPU they are prepared one by one as they are consumed: there are no other cores to prepare them on. `tensors`
    gives those of an item that the device reads.
    """
    if device.type != "cuda":
        yield from items
        return
    ready: queue.Queue[Any] = queue.Queue(AHEAD)
    stopped = threading.Event()
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))

    def put(item: object) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def prepare() -> None:
        try:
            with torch.cuda.stream(stream):
                for item in items:
                    done = torch.cuda.Event()
                    done.record(stream)
                    if not put((item, done)):
                        return
            put(None)
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=prepare, name="legnn-prefetch", daemon=True)
    worker.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            item, done = found
            current = torch.cuda.current_stream(device)
            current.wait_event(done)
            for tensor in tensors(item):
                # or the allocator would give its memory to the next batch while this one is still read
                tensor.record_stream(current)
            yield item
    finally:
        stopped.set()
        worker.join()
