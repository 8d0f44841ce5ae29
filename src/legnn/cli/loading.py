"""Says that PyTorch is loading, which takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from legnn.cli.processes import is_rank_zero

WORDS, ERASE = "loading PyTorch …", "\r\x1b[K"


@contextmanager
def loading() -> Iterator[None]:
    """Context in which a command imports what it computes with; a line in the terminal says so meanwhile."""
    if "torch" in sys.modules:
        yield
        return
    is_shown = is_rank_zero() and sys.stderr.isatty()
    if is_shown:
        print(WORDS, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if is_shown:
            print(ERASE, end="", file=sys.stderr, flush=True)
