"""Functions compiled by numba, cached on disk where that is possible, and those that kernels call."""

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from legnn.ops.runtime.kernel_cache import caching


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
