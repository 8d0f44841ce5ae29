"""Memory that is freed in one step stays with the process for the next.

Without it, the C library gives the last megabytes of every step back to the system, and the next step waits for zeroed
pages: some 3,500 of them in an epoch of `legnn train digits`, where a step that keeps its memory gets fewer than 20.
"""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`, by the numbers that GNU's `malloc.h` gives them."""
KEPT_BYTES = 2**28
LARGEST_BYTES = 2**25
"""Larger blocks have pages of their own, and go back to the system as soon as they are freed; more is not allowed."""


def keep_freed_memory() -> bool:
    """Lets this process keep up to `KEPT_BYTES` of freed memory; returns False without GNU's C library.

    For processes of our own: what a program that imports the library does with its memory is its own affair.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    # both: setting one of them ends the adaptation of the other
    return bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES) and mallopt(MMAP_THRESHOLD, LARGEST_BYTES))
