"""The progress display of all sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from legnn.config.duration import PLAIN_SECONDS, duration
from legnn.runs.progress import EpochProgress
from legnn.sweep.tasks import Event, Outcome


class SweepProgress(EpochProgress):
    """A line over the runs of a sweep; without a terminal or notebook, a new line now and then.

    Args:
        total: how many runs there are; None if nobody knows.
        seconds_left: returns the seconds of the budget that are left; without it the time left is estimated.
        slots: runs at a time.
    """

    def __init__(
        self,
        total: int | None = None,
        seconds_left: Callable[[], float] | None = None,
        slots: int = 1,
        plain_seconds: float = PLAIN_SECONDS,
    ) -> None:
        super().__init__(plain_seconds)
        self.total, self._budget, self._slots = total, seconds_left, slots
        self._states: dict[str, str] = {}
        self._seconds: list[float] = []
        self._best: tuple[float, str] | None = None

    def hide(self) -> None:
        """Shows nothing from now on."""
        self._is_plain, self._plain_seconds = True, math.inf

    def on_event(self, event: Event) -> None:
        """Shows an epoch of a run, or what it does before and after its epochs."""
        if event.log is None:
            self._update(f"{event.trial}: {event.stage}")
            return
        val = event.log.val.get("accuracy")
        if val is not None and (self._best is None or val > self._best[0]):
            self._best = val, event.trial
        self._update(f"{event.trial} epoch {event.log.epoch}" + ("" if val is None else f" val {val:.4f}"))

    def on_outcome(self, outcome: Outcome) -> None:
        """Counts a run that has ended."""
        self._states[outcome.trial] = outcome.state
        if outcome.state == "finished" and outcome.seconds:
            self._seconds.append(outcome.seconds)
        self._update("")

    def _update(self, current: str) -> None:
        states = [*self._states.values()]
        done = states.count("finished")
        words = [f"{done} of {self.total} runs" if self.total is not None else f"{done} runs"]
        words += [f"{states.count(state)} {state}" for state in ("paused", "failed") if state in states]
        words += [] if self._best is None else [f"best {self._best[0]:.4f} ({self._best[1]})"]
        left = self._seconds_left_of_all(len(states))
        words += [] if left is None else [f"{duration(max(left, 0.0))} left"]
        words += [current] if current else []
        self._line(", ".join(words), total=self.total, completed=done)

    def _seconds_left_of_all(self, ended: int) -> float | None:
        if self._budget is not None:
            return self._budget()
        if self.total is None or not self._seconds:
            return None
        waiting = self.total - ended
        return fmean(self._seconds) * waiting / max(min(self._slots, waiting), 1)


@contextmanager
def show_progress(is_visible: bool, total: int | None = None, **options: Any) -> Iterator[SweepProgress]:
    """Context with the display of a sweep, which shows nothing unless `is_visible`."""
    display = SweepProgress(total, **options)
    if not is_visible:
        display.hide()
        yield display
        return
    with display:
        yield display
