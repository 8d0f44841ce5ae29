"""What a command does before it imports PyTorch, which takes seconds: it says so, and stops the garbage collector."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from legnn.cli.processes import is_rank_zero

WORDS, ERASE = "loading PyTorch …", "\r\x1b[K"


@contextmanager
def loading() -> Iterator[None]:
    """Context in which a command imports what it computes with; a line in the terminal says so meanwhile.

    The hundred thousands of objects that the imports leave stay to the end: the garbage collector neither looks through
    them again and again while they are made, nor once more at the end of the process, which took 0.6 s together.
    """
    if "torch" in sys.modules:
        yield
        return
    is_shown = is_rank_zero() and sys.stderr.isatty()
    if is_shown:
        print(WORDS, end="", file=sys.stderr, flush=True)
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        atexit.register(gc.freeze)
        if collects:
            gc.enable()
        if is_shown:
            print(ERASE, end="", file=sys.stderr, flush=True)
