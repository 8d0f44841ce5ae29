"""Runs numba kernels on several threads.

Not numba's own `prange`: that is a second pool of threads beside PyTorch's (see `openmp`), kernels compile several
times faster without it, and two threads of one program must not use it at the same time.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch

from legnn.ops.runtime.openmp import openmp_parallel

SMALL = 200_000
"""With fewer numbers than this to process, waking another thread takes longer than the work."""

CALLS = 4
"""Calls of the kernel for each thread: enough that no thread is idle near the end, and few enough to be cheap."""


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Context in which PyTorch, and so the kernels, use this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_parallel(function: Callable[..., None], cuts: Sequence[int], work: int, *arguments: Any) -> None:
    """Calls `function(begin, end, *arguments)` for ranges between `cuts`, on `torch.get_num_threads()` threads.

    A call must write to the rows from `begin` to `end` only. The result then does not depend on the number of threads.

    Args:
        function: a kernel, or any function that releases the GIL.
        cuts: ascending rows; no range crosses one of them without containing it.
        work: about how many numbers are processed in total.
        *arguments: passed on.
    """
    threads = min(torch.get_num_threads(), len(cuts) - 1)
    if threads < 2 or work < SMALL:
        function(cuts[0], cuts[-1], *arguments)
        return
    step = max((len(cuts) - 1) // (CALLS * threads), 1)
    ranges = itertools.pairwise([*cuts[:-1:step], cuts[-1]])
    lock = threading.Lock()
    errors: list[BaseException] = []

    def call_until_done(_: object) -> None:
        try:
            while True:
                with lock:
                    rows = next(ranges, None)
                if rows is None or errors:
                    return
                if rows[0] < rows[1]:
                    function(*rows, *arguments)
        except BaseException as error:
            errors.append(error)

    parallel = openmp_parallel() or _pool_parallel
    parallel(call_until_done, threads)
    if errors:
        raise errors[0]


def _pool_parallel(function: Callable[[object], None], threads: int) -> None:
    """Calls `function` once on each of `threads` threads, the calling thread included."""
    others = [_pool(os.getpid(), threads).submit(function, None) for _ in range(threads - 1)]
    function(None)
    for other in others:
        other.result()


@lru_cache(1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # one for each process: a forked process does not inherit the threads of a pool
    return ThreadPoolExecutor(threads, thread_name_prefix="legnn")
