"""`hashing.mix` for numba's kernels."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from legnn.ops.runtime.jit import kernel


@kernel
def mix(word):
    """Return `hashing.mix` of a 32-bit word."""
    # numba widens every product to 64 bits; narrowed again, twice as many words fit in a vector
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 16)) * np.uint32(0x7FEB352D))
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 15)) * np.uint32(0x846CA68B))
    return np.uint32(word ^ np.uint32(word >> 16))
