"""Runs numba kernels on several threads.

Not numba's own `prange`: that is a second pool of threads beside PyTorch's (see `openmp`), kernels compile several
times faster without it, and two threads of one program must not use it at the same time.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch

from legnn.ops.runtime.fork_join import FORK, Job
from legnn.ops.runtime.openmp import gomp_parallel_address

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
        kernel: begins with `fork_join`.
        cuts: ascending rows; no range crosses one of them without containing it.
        work: about how many numbers are processed in total.
        *arguments: passed on.
    """
    threads = min(torch.get_num_threads(), len(cuts) - 1)
    if threads < 2 or work < SMALL:
        threads, cuts = 1, (cuts[0], cuts[-1])
    gomp_parallel = gomp_parallel_address() if threads > 1 else 0
    # also for one thread, which then counts no references, either
    job = Job(gomp_parallel, threads, len(cuts) - 1).with_cuts(cuts)
    others = range(0 if gomp_parallel else threads - 1)
    running = [_pool(os.getpid(), threads).submit(_take_part, kernel, job, arguments) for _ in others]
    _take_part(kernel, job, arguments)
    for one in running:
        one.result()
    done = Job(*job[: len(Job._fields)])
    if done.failed:
        raise MemoryError("a kernel found no memory")
    assert done.next >= done.ranges, f"{kernel.__name__} does not begin with `fork_join`"


def _take_part(kernel: Callable[..., None], job: array[int], arguments: tuple[Any, ...]) -> None:
    # a thread that is not waited for, after Ctrl-C, holds the job it writes to
    kernel(job.buffer_info()[0], FORK, *arguments)


@lru_cache(1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # one for each process: a forked process does not inherit the threads of a pool
    return ThreadPoolExecutor(threads, thread_name_prefix="legnn")
