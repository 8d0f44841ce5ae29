"""When a process is killed: by how far it has come, so that a slow machine kills at the same stages as a fast one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BEFORE = 0.15
"""How often a process is killed before it can have written anything."""
POLL_SECONDS = 0.001


@dataclass(frozen=True)
class Moment:
    """Some time after a file has so many lines, or a folder is there; or after the start of the process."""

    path: Path
    lines: int = 0
    is_folder: bool = False
    seconds: float = 0.0

    def wait(self, is_alive: Callable[[], bool]) -> None:
        """Returns when the moment has come, or the process has ended."""
        while is_alive() and not self._has_come():
            time.sleep(POLL_SECONDS)
        end = time.monotonic() + self.seconds
        while is_alive() and time.monotonic() < end:
            time.sleep(POLL_SECONDS)

    def _has_come(self) -> bool:
        if self.is_folder:
            return self.path.is_dir()
        return self.lines == 0 or count_lines(self.path) >= self.lines

    def __str__(self) -> str:
        after = f"{self.path.name} is there" if self.is_folder else f"epoch {self.lines}" if self.lines else "the start"
        return f"{1000 * self.seconds:.0f} ms after {after}"


def draw(chance: random.Random, metrics: Path, done: int, epochs: int) -> Moment:
    """Returns a moment of a run that has done some epochs: any stage from its start to the writing of its result."""
    if chance.random() < BEFORE:
        return Moment(metrics, seconds=chance.uniform(0, 0.5))
    stage = chance.randint(done, epochs)
    if stage == done == 0:
        return Moment(metrics.parent, is_folder=True, seconds=chance.uniform(0, 0.05))
    # after the last epoch it predicts and writes, which takes longer than an epoch
    return Moment(metrics, lines=stage, seconds=chance.uniform(0, 0.05))


def count_lines(path: Path) -> int:
    """Returns the lines of a file so far."""
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0
