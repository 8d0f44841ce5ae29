"""The garbage collector of Python while a run trains."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FACTOR = 100
"""So many times as rare are collections of everything."""

_lock = threading.Lock()
_users = 0
_before = _within = (0, 0, 0)
"""Thresholds of the collector as the caller set them, and as they are set here."""


@contextmanager
def rare_full_collections() -> Iterator[None]:
    """Context in which new objects are collected as ever, and all objects a hundred times as rarely.

    A collection of everything goes through all that was imported, for up to 0.3 s: as long as a small run takes, which
    leaves no cycles. Not frozen: a collection of the few objects that are left would be the measure for when the next
    one of everything is due, which would come soon after.
    """
    global _users, _before, _within
    with _lock:
        if _users == 0:
            _before = gc.get_threshold()
            _within = (*_before[:2], _before[2] * FACTOR)
            gc.set_threshold(*_within)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            # a callback may have set others
            if _users == 0 and gc.get_threshold() == _within:
                gc.set_threshold(*_before)
