"""Runs numba kernels on several threads.

Not numba's own `prange`: kernels compile several times faster without it, and two threads of one program must not use
it at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch

SMALL = 50_000
"""With fewer numbers than this to process, waking another thread takes longer than the work."""


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Context in which PyTorch, and so the kernels, use this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_parallel(kernel: Callable[..., None], cuts: Sequence[int], work: int, *arguments: Any) -> None:
    """Calls `kernel(begin, end, *arguments)` for ranges between `cuts`, on `torch.get_num_threads()` threads.

    A call must write to the rows from `begin` to `end` only. The result then does not depend on the number of threads.

    Args:
        kernel: releases the interpreter's lock.
        cuts: ascending rows, between which there is about the same work.
        work: about how many numbers are processed in total.
        *arguments: passed on.
    """
    parts = len(cuts) - 1
    threads = min(torch.get_num_threads(), parts) if work >= SMALL else 1
    if threads < 2:
        kernel(cuts[0], cuts[-1], *arguments)
        return
    # a single range for each thread: every call takes the interpreter's lock
    first, *others = pairwise(cuts[parts * thread // threads] for thread in range(threads + 1))
    pool = _pool(os.getpid(), threads - 1)
    running = [pool.submit(kernel, *rows, *arguments) for rows in others]
    kernel(*first, *arguments)
    for future in running:
        future.result()


@lru_cache(1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # one for each process: a forked process does not inherit the threads of a pool
    return ThreadPoolExecutor(threads, thread_name_prefix="legnn")
