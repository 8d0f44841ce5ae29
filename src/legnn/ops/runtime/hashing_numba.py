"""`hashing.mix` in numba's kernels."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from legnn.ops.runtime.threads import kernel


@kernel
def mixed(word):
    """`hashing.mix` of a 32-bit word."""
    # numba widens every product, and vectors of narrow words are twice as long
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 16)) * np.uint32(0x7FEB352D))
    word = np.uint32(np.uint32(word ^ np.uint32(word >> 15)) * np.uint32(0x846CA68B))
    return np.uint32(word ^ np.uint32(word >> 16))
