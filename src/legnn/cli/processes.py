"""The command of this process, signals, and which of several processes writes to the terminal."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS_FOR_RANK_ZERO = 20.0
"""Seconds that the other processes wait for the first one to print what is wrong; torchrun ends them when it has."""


def typed_command() -> str:
    """The command as it was typed."""
    return shlex.join(["legnn", *sys.argv[1:]])


def is_rank_zero() -> bool:
    """Whether this process prints; `torchrun` numbers those it starts."""
    return os.environ.get("RANK", "0") == "0"


def wait_for_rank_zero() -> None:
    """Lets the first process print what all of them found: `torchrun` ends the others when one has ended.

    One that still runs after a while found something of its own, and prints that itself.
    """
    if not is_rank_zero():
        time.sleep(SECONDS_FOR_RANK_ZERO)


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Ctrl-C (or a scheduler's SIGTERM) ends training after the epoch in flight; a second one ends it at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
