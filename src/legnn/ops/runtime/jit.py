"""Functions compiled by numba, cached on disk where that is possible, and those that kernels call.

Numba compiles a kernel anew when the file that defines it has changed, but not when a function changed that it calls
from another file. So the name of the folder of the cache is a digest of the sources of all operations.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from legnn.files import cache_folder

_lock = Lock()


@contextmanager
def caching() -> Iterator[bool]:
    """Within it, functions that are decorated with `cache=True` are cached in our folder; False if there is none."""
    with _lock:
        before = config.CACHE_DIR
        folder = _folder(before)
        config.CACHE_DIR = folder or before
        try:
            yield folder is not None
        finally:
            config.CACHE_DIR = before


@lru_cache(1)
def _folder(chosen: str) -> str | None:
    """A folder in `chosen`, the user's cache folder, or that for temporary files, which nobody else can write to."""
    name = f"kernels-{_digest_of_sources()}"
    user = os.getuid() if hasattr(os, "getuid") else None
    usual = [cache_folder() / name, Path(tempfile.gettempdir()) / f"legnn-{user}-{name}"]
    for folder in [Path(chosen) / name] if chosen else usual:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError:
            continue
        # what is in it will be run: it must not have been made by another user
        if os.access(folder, os.W_OK) and user in (None, folder.lstat().st_uid):
            return str(folder)
    return None


def _digest_of_sources() -> str:
    digest = blake2b(digest_size=8)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Returns `function` compiled on its first call; it releases the GIL while it runs.

    Args:
        function: of arrays and numbers; compiled code does not check that indices are within the arrays.
        **options: of `numba.njit`.
    """
    with caching() as cache:
        # without the form that C would call, which nobody does: it takes a tenth of the time of compiling
        decorate = numba.njit(nogil=True, cache=cache, no_cfunc_wrapper=True, **options)
        return cast(Callable[..., Any], decorate(function))


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function` compiled so that its sums may be reordered and vectorized."""
    return compiled(function, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@kernel
def mix(word: Any) -> Any:
    """Returns `hashing.mix` of a 32-bit word."""
    # numba widens every product to 64 bits; narrowed again, twice as many words fit in a vector
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 16)) * np.uint32(0x7FEB352D))
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 15)) * np.uint32(0x846CA68B))
    return np.uint32(word ^ np.uint32(word >> 16))


@kernel
def exponentiate(x: Any, begin: Any, end: Any) -> None:
    """Replaces `x[begin:end]` by their exponentials, with an error of at most `3 · 2⁻²³` of each, 16 of them at once.

    `np.exp` would be a call for each. `e^x = 2^n e^r` with `|r| ≤ log(2) / 2`, where a polynomial is as good; its
    coefficients are those of `expf` in the Cephes library. Below -87 the result is that of -87, some `10⁻³⁸`.
    """
    for k in range(np.uint64(begin), np.uint64(end)):
        # NaN stays NaN
        value = np.float32(-87) if x[k] < np.float32(-87) else x[k]
        value = np.float32(88) if value > np.float32(88) else value
        n = np.floor(value * np.float32(1.44269504) + np.float32(0.5))
        r = value - n * np.float32(0.69314718)
        p = np.float32(1.9875691500e-4)
        p = p * r + np.float32(1.3981999507e-3)
        p = p * r + np.float32(8.3334519073e-3)
        p = p * r + np.float32(4.1665795894e-2)
        p = p * r + np.float32(1.6666665459e-1)
        p = p * r + np.float32(5.0000001201e-1)
        power = np.int32(np.int32(np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
        x[k] = (p * r * r + r + np.float32(1)) * power


_half, _word, _single = ir.IntType(16), ir.IntType(32), ir.FloatType()


@intrinsic
def widen(context: Any, value: Any) -> Any:
    """Returns a number as float32: of a matrix in bf16, kernels read the 16 bits.

    Like `narrow` it is written for LLVM: as a function in Python, each took a tenth of a second to compile.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if value != types.uint16:
            return arguments[0]
        return builder.bitcast(builder.shl(builder.zext(arguments[0], _word), _word(16)), _single)

    return (types.float32 if value == types.uint16 else value)(value), generate


@intrinsic
def narrow(context: Any, value: Any, into: Any) -> Any:
    """Returns a float32 as what the array `into` holds: itself, or the 16 bits of the nearest number in bf16."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = context.cast(builder, arguments[0], value, types.float32)
        if into.dtype != types.uint16:
            return context.cast(builder, number, types.float32, into.dtype)
        bits = builder.bitcast(number, _word)
        # half a unit of the last bit that stays, or just below where that bit is even: ties go to the even number
        last = builder.and_(builder.lshr(bits, _word(16)), _word(1))
        rounded = builder.trunc(builder.lshr(builder.add(builder.add(bits, _word(0x7FFF)), last), _word(16)), _half)
        # NaN must not be rounded: its bits may become those of infinity
        return builder.select(builder.fcmp_unordered("uno", number, number), _half(0x7FC0), rounded)

    return into.dtype(value, into), generate
