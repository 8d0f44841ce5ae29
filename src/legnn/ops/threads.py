"""A numba kernel over parts of its rows, on as many threads as PyTorch uses.

Not numba's own `prange`: kernels compile several times faster without it, it cannot be forked, and two threads of one
program may not use it at once.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import torch

SMALL = 200_000
"""Below so many numbers to touch, waking another thread takes longer than the work."""

kernel = numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")
"""A function compiled on its first call, and kept on disk; its sums may be taken in vectors."""


def run(function: Callable[..., None], cuts: Sequence[int], work: int, *arguments: Any) -> None:
    """Call `function(begin, end, *arguments)` between neighboring `cuts`.

    Parts must write to places of their own. Which thread takes which part does not matter then, and the result is the
    same for any number of threads.
    """
    threads = min(torch.get_num_threads(), len(cuts) - 1)
    if threads < 2 or work < SMALL:
        function(cuts[0], cuts[-1], *arguments)
        return
    parts = itertools.pairwise(cuts)
    lock = threading.Lock()

    def take() -> None:
        while True:
            with lock:
                part = next(parts, None)
            if part is None:
                return
            if part[0] < part[1]:
                function(part[0], part[1], *arguments)

    others = [_pool(os.getpid(), threads).submit(take) for _ in range(threads - 1)]
    take()
    for other in others:
        other.result()


@lru_cache(1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # by process: the threads of a pool do not live on in a fork
    return ThreadPoolExecutor(threads, thread_name_prefix="legnn")
