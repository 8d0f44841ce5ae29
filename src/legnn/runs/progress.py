"""How far a run is: what it does before the first epoch, the epochs, and the time left."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from legnn.config.duration import PLAIN_SECONDS, duration
from legnn.training import EpochLog, title_of


def _never() -> bool:
    return False


def _ignore(title: str) -> None:
    pass


class Callbacks(NamedTuple):
    """Functions that a caller gives; those of the epochs are called after every epoch."""

    on_epoch: Callable[[EpochLog], None]
    should_stop: Callable[[], bool]
    """True interrupts the run: a checkpoint is written, and it can continue later."""
    should_finish: Callable[[], bool] = _never
    """True ends the run as if that had been its last epoch."""
    on_stage: Callable[[str], None] = _ignore
    """Called with what is done now, where that is no epoch."""


class EpochProgress(Progress):
    """A line over the epochs of a run; without a terminal or notebook, a new line at most every `plain_seconds`."""

    def __init__(self, plain_seconds: float = PLAIN_SECONDS) -> None:
        self._plain_seconds = plain_seconds
        # a name in the user's data may contain brackets, which are not markup
        self._words = Console(stderr=True, markup=False, emoji=False)
        is_notebook = self._words.is_jupyter and find_spec("ipywidgets") is not None
        self._is_plain = not (sys.stderr.isatty() or is_notebook)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=12), TextColumn("{task.fields[words]}"))
        super().__init__(*columns, TimeElapsedColumn(), console=self._words, disable=self._is_plain, transient=True)
        self._title, self._task = "training", TaskID(-1)
        self._begun: tuple[int, float] | None = None
        """The first epoch that was seen, which also compiled what it needed, and when it ended."""
        self._last = time.monotonic()
        self._timer: threading.Timer | None = None

    def stop(self) -> None:
        """Removes the line."""
        self._cancel()
        super().stop()

    def stage(self, title: str) -> None:
        """Shows what is done before or after the epochs; without a terminal, if it takes long."""
        self._cancel()
        if self._is_plain:
            self._timer = threading.Timer(self._plain_seconds, self._print, [f"{title} …"])
            self._timer.daemon = True
            self._timer.start()
        else:
            self._show(title, total=None, completed=0, words="")

    def epoch(self, log: EpochLog) -> None:
        """Moves the line by an epoch."""
        self._cancel()
        words = f"epoch {log.epoch}  loss {log.loss:.3f}"
        words += "".join(f"  val {title_of(name)} {value:.4f}" for name, value in log.val.items())
        if log.pseudo_labels is not None:
            words += f"  pseudo labels {log.pseudo_labels:,}"
        left = self._seconds_left(log)
        # early stopping may end it sooner
        words += f"  at most {duration(left)} left" if left is not None and left >= 1 else ""
        self._line(words, total=log.epochs, completed=log.epoch)

    def _line(self, words: str, *, total: float | None, completed: float) -> None:
        if not self._is_plain:
            self._show(self._title, total=total, completed=completed, words=words)
        elif time.monotonic() - self._last > self._plain_seconds:
            self._print(f"{self._title}: {words}")

    def _seconds_left(self, log: EpochLog) -> float | None:
        now = time.monotonic()
        if self._begun is None:
            self._begun = log.epoch, now
        done = log.epoch - self._begun[0]
        return (now - self._begun[1]) / done * (log.epochs - log.epoch) if done > 0 else None

    def _show(self, title: str, *, total: float | None, completed: float, words: str) -> None:
        if self._task not in self.task_ids:
            self._task = self.add_task(title, total=total, words=words)
        # rich keeps a total that it is given None for
        self.tasks[0].total = total
        self.update(self._task, description=title, completed=completed, words=words)

    def _print(self, line: str) -> None:
        self._last = time.monotonic()
        self._words.print(line, highlight=False)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


@contextmanager
def follow(callbacks: Callbacks, *, visible: bool) -> Iterator[Callbacks]:
    """Context in which the returned callbacks also show the progress on standard error, if `visible`."""
    # under `torchrun`, one process speaks for all
    if not visible or os.environ.get("RANK", "0") != "0":
        yield callbacks
        return
    with EpochProgress() as progress:

        def on_epoch(log: EpochLog) -> None:
            progress.epoch(log)
            callbacks.on_epoch(log)

        yield callbacks._replace(on_epoch=on_epoch, on_stage=progress.stage)
