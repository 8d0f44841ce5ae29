"""The garbage collector of Python while a run trains."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_users = 0
_is_ours = False
"""Whether the objects that are frozen now were frozen here."""


@contextmanager
def collecting_new_objects() -> Iterator[None]:
    """Context in which garbage is looked for among the objects that are made within it alone.

    A collection of everything goes through all that was imported, for up to 0.3 s: as long as a small run takes. What a
    caller has frozen stays frozen.
    """
    global _users, _is_ours
    with _lock:
        if _users == 0 and (_is_ours := gc.get_freeze_count() == 0):
            gc.freeze()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _is_ours:
                gc.unfreeze()
