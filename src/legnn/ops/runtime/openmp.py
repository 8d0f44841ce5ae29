"""PyTorch's own OpenMP threads, for kernels that are not PyTorch's.

After each matrix product PyTorch's threads spin for some milliseconds in case there is more to do. A second pool of
threads competes with them for the cores. `GOMP_parallel`, the function that compiled OpenMP code calls, runs a kernel
on the threads that are spinning already.

Gain: a sum over 200,000 edges of 64 channels right after a matrix product, on 2 threads of 2 cores, takes 1.3 ms, on a
pool of threads 1.2 ms at one time and 2.3 ms at another (medians of 200); with other programs on the same cores,
nothing.

Fragile ground: PyTorch does not export the function, so it is looked up in the OpenMP library that the memory map of
the process (`/proc/self/maps`) lists. Where it is not found, `threads` uses a pool of its own, with the same results.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path

import torch

MEMORY_MAP = Path("/proc/self/maps")
LIBRARIES = ("libgomp", "libomp", "libiomp")
"""GNU's, LLVM's and Intel's, all of which have `GOMP_parallel`."""


@lru_cache(1)
def gomp_parallel_address() -> int:
    """Returns where `GOMP_parallel` of PyTorch's OpenMP threads is; 0 where there is no way to reach them."""
    if "OpenMP" not in torch.__config__.parallel_info() or not MEMORY_MAP.exists():
        return 0
    paths = {line.split()[-1] for line in MEMORY_MAP.read_text().splitlines() if "/" in line}
    libraries = [path for path in paths if os.path.basename(path).startswith(LIBRARIES)]
    # PyTorch ships a copy of its own: the threads of another loaded copy are not PyTorch's
    libraries.sort(key=lambda path: not path.startswith(os.path.dirname(torch.__file__)))
    for path in libraries:
        gomp_parallel = getattr(ctypes.CDLL(path), "GOMP_parallel", None)
        if gomp_parallel is not None:
            return ctypes.cast(gomp_parallel, ctypes.c_void_p).value or 0
    return 0
