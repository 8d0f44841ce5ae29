"""A numba kernel over parts of its rows, on PyTorch's own threads.

After every product of matrices PyTorch's threads stay awake for some milliseconds, waiting for more. A second pool of
threads would have to share the cores with them: a kernel of eight milliseconds then takes sixteen. So the kernels are
handed to the threads that are awake, by the call with which compiled OpenMP code does it. Where there is no OpenMP to
ask, a pool of threads does it.

Not numba's own `prange`: that is such a second pool, kernels compile several times faster without it, and two threads
of one program may not use it at once.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from legnn.ops.runtime.jit import compiled

SMALL = 200_000
"""Below so many numbers to touch, waking another thread takes longer than the work."""

PARTS = 4
"""Parts for each thread."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function compiled on its first call and kept on disk; its sums may be taken in vectors."""
    return compiled(function, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@intrinsic
def prefetch(context: Any, array: Any, index: Any) -> Any:
    """In a kernel, `prefetch(array, index)`: that entry will be needed soon, and nobody waits for it now."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        of = context.make_array(kind)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], signature.args[1], types.intp)
        pointer = cgutils.get_item_pointer(context, builder, kind, of, [place], wraparound=False)
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        call = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        )
        # for reading, to be kept near, of data
        builder.call(call, [builder.bitcast(pointer, byte), *(word(flag) for flag in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, index), generate


def run(function: Callable[..., None], cuts: Sequence[int], work: int, *arguments: Any) -> None:
    """Call `function(begin, end, *arguments)` between neighboring `cuts`.

    Parts must write to places of their own. Which thread takes which part does not matter then, and the result is the
    same for any number of threads.
    """
    threads = min(torch.get_num_threads(), len(cuts) - 1)
    if threads < 2 or work < SMALL:
        function(cuts[0], cuts[-1], *arguments)
        return
    # more parts than these would only be calls: a few to a thread keep all of them busy to the end
    step = max((len(cuts) - 1) // (PARTS * threads), 1)
    parts = itertools.pairwise([*cuts[:-1:step], cuts[-1]])
    lock = threading.Lock()
    failed: list[BaseException] = []

    def take(_: object = None) -> None:
        try:
            while True:
                with lock:
                    part = next(parts, None)
                if part is None or failed:
                    return
                if part[0] < part[1]:
                    function(part[0], part[1], *arguments)
        except BaseException as error:
            failed.append(error)

    _on_threads(take, threads)
    if failed:
        raise failed[0]


def _on_threads(work: Callable[[object], None], threads: int) -> None:
    """Call `work` once on each of so many threads, this one included."""
    parallel = _openmp()
    if parallel is not None:
        parallel(_WORK(work), None, threads, 0)
        return
    others = [_pool(os.getpid(), threads).submit(work, None) for _ in range(threads - 1)]
    work(None)
    for other in others:
        other.result()


_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@lru_cache(1)
def _openmp() -> Callable[..., None] | None:
    """`GOMP_parallel` of the OpenMP library that PyTorch has loaded, which GNU's, LLVM's and Intel's all have."""
    if "OpenMP" not in torch.__config__.parallel_info() or not os.path.exists("/proc/self/maps"):
        return None
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "/" in line}
    # PyTorch brings its own copy along: another one that happens to be loaded has threads of its own
    ours = os.path.dirname(torch.__file__)
    found = [
        path for path in loaded if any(name in os.path.basename(path) for name in ("libgomp", "libomp", "libiomp"))
    ]
    for path in sorted(found, key=lambda path: not path.startswith(ours)):
        parallel = getattr(ctypes.CDLL(path), "GOMP_parallel", None)
        if parallel is not None:
            parallel.argtypes, parallel.restype = [_WORK, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
            return parallel
    return None


@lru_cache(1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # by process: the threads of a pool do not live on in a fork
    return ThreadPoolExecutor(threads, thread_name_prefix="legnn")
