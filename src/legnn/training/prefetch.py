"""Batches made ready in a thread while the one before is trained on, so that the device does not wait."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

AHEAD = 2
"""Batches made ready beforehand: one is being trained on, one lies ready, one is in the making."""


def prefetch(items: Iterable[T], device: torch.device, tensors: Callable[[T], Iterable[Tensor]]) -> Iterator[T]:
    """`items` in order, made in a thread of their own on a CUDA stream of their own.

    On a CPU they are made one by one as they are asked for: there are no other cores to make them on. `tensors` names
    those of an item that the device reads. An error in the making is raised here.
    """
    if device.type != "cuda":
        yield from items
        return
    ready: queue.Queue[Any] = queue.Queue(AHEAD)
    over = threading.Event()
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))

    def put(item: object) -> bool:
        while not over.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            with torch.cuda.stream(stream):
                for item in items:
                    made = torch.cuda.Event()
                    made.record(stream)
                    if not put((item, made)):
                        return
            put(None)
        except BaseException as error:
            put(error)

    maker = threading.Thread(target=make, name="legnn-prefetch", daemon=True)
    maker.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            item, made = found
            current = torch.cuda.current_stream(device)
            current.wait_event(made)
            for tensor in tensors(item):
                # or its memory would be handed to the next batch while this one is still read
                tensor.record_stream(current)
            yield item
    finally:
        over.set()
        maker.join()
