"""Items prepared in threads while the ones before are computed with, so that the device does not idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache, partial
from itertools import chain, islice
from typing import TypeVar

import torch
from torch import Tensor

S = TypeVar("S")
T = TypeVar("T")

THREADS = 2
"""Threads that prepare batches: while one waits for its sizes, another one launches."""
AHEAD = 2
"""Batches that are ready, in addition to the current one and those that are being prepared."""
QUEUED = 2
"""Steps that the host may have launched and the device not finished: each holds the memory of its batch."""


def map_ahead(
    function: Callable[[S], T],
    items: Iterable[S],
    threads: int,
    *,
    ahead: int = 0,
    begin: Callable[[], object] | None = None,
) -> Generator[T, None, None]:
    """Yields `function` of each item in order, the next ones computed in threads; their errors are raised here.

    Args:
        ahead: how many may have been computed, or wait for a thread, in addition to one for each thread.
        begin: called at the beginning of each thread.
    """
    pool = ThreadPoolExecutor(threads, "legnn-ahead", begin)
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def prefetch(
    prepare: Callable[[S], T],
    items: Iterable[S],
    device: torch.device,
    tensors: Callable[[T], Iterable[Tensor]],
) -> Iterator[T]:
    """Yields `prepare(item)` of each item in order, prepared in threads on streams of a GPU.

    Their errors are raised here, and the device is never more than a few items behind. The first item is prepared in
    the calling thread: what is computed or compiled once and read by all others is then made by one thread, before any
    other stream reads it. `tensors` returns those of an item that the device reads.
    """
    remaining = iter(items)

    def prepare_ahead(item: S) -> tuple[T, torch.cuda.Event]:
        return prepare(item), torch.cuda.current_stream(device).record_event()

    first = [prepare_ahead(item) for item in islice(remaining, 1)]
    current = torch.cuda.current_stream(device)
    streams = [_sampling_stream(current, number) for number in range(THREADS)]
    for stream in streams:
        stream.wait_stream(current)
    unused = list(streams)
    # the first one is prepared, and goes the way of all others
    tasks: Iterator[Callable[[], tuple[T, torch.cuda.Event]]]
    tasks = chain([first.pop] * len(first), (partial(prepare_ahead, item) for item in remaining))
    # a thread begins with a stream, which it keeps
    prepared = map_ahead(
        lambda task: task(), tasks, THREADS, ahead=AHEAD, begin=lambda: torch.cuda.set_stream(unused.pop())
    )
    launched: deque[torch.cuda.Event] = deque()
    try:
        with closing(prepared):
            for item, done in prepared:
                current = torch.cuda.current_stream(device)
                current.wait_event(done)
                for tensor in tensors(item):
                    # or the allocator would give its memory to the next batch while this one is still read
                    tensor.record_stream(current)
                yield item
                # it does not wait in a loop, which would take the time of a core
                launched.append(torch.cuda.Event(blocking=True))
                launched[-1].record(torch.cuda.current_stream(device))
                if len(launched) > QUEUED:
                    launched.popleft().synchronize()
    finally:
        for stream in streams:
            # what the threads read is freed on this one, also where some items were prepared for nobody
            current.wait_stream(stream)


@lru_cache(None)
def _sampling_stream(current: torch.cuda.Stream, number: int) -> torch.cuda.Stream:
    """The same ones in every epoch: PyTorch, and sampling, keep memory for every stream that they have seen."""
    # short kernels, whose sizes a thread waits for, go before the long ones of training
    return torch.cuda.Stream(current.device, priority=-1)
