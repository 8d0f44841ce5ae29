"""PyTorch's own OpenMP threads, for kernels that are not PyTorch's.

After each matrix product PyTorch's threads spin for some milliseconds in case there is more to do. A second pool of
threads competes with them for the cores. `GOMP_parallel`, the function that compiled OpenMP code calls, runs a kernel
on the threads that are spinning already.

Gain: a sum over 200,000 edges of 64 channels right after a matrix product, on 2 threads of 2 cores, takes 2.0 ms
instead of 3.4 ms (medians of 200); with other programs on the same cores, nothing.

Fragile ground: PyTorch does not export the function, so it is looked up in the OpenMP library that the memory map of
the process (`/proc/self/maps`) lists. Where it is not found, `threads` uses a pool of its own, with the same results.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch

Parallel = Callable[[Callable[[object], None], int], None]
"""`parallel(function, threads)` calls `function` once on each of `threads` threads, the calling thread included."""

MEMORY_MAP = Path("/proc/self/maps")
LIBRARIES = ("libgomp", "libomp", "libiomp")
"""GNU's, LLVM's and Intel's, all of which have `GOMP_parallel`."""

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@lru_cache(1)
def openmp_parallel() -> Parallel | None:
    """Returns a function that runs on PyTorch's OpenMP threads; None where there is no way to reach them."""
    if "OpenMP" not in torch.__config__.parallel_info() or not MEMORY_MAP.exists():
        return None
    paths = {line.split()[-1] for line in MEMORY_MAP.read_text().splitlines() if "/" in line}
    libraries = [path for path in paths if os.path.basename(path).startswith(LIBRARIES)]
    # PyTorch ships a copy of its own: the threads of another loaded copy are not PyTorch's
    libraries.sort(key=lambda path: not path.startswith(os.path.dirname(torch.__file__)))
    for path in libraries:
        gomp_parallel = getattr(ctypes.CDLL(path), "GOMP_parallel", None)
        if gomp_parallel is not None:
            gomp_parallel.argtypes = [_FUNCTION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            gomp_parallel.restype = None
            return lambda function, threads: gomp_parallel(_FUNCTION(function), None, threads, 0)
    return None
