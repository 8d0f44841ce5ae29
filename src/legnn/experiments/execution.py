"""Trains the runs that a plan misses: a sweep, continued as long as finished runs show that others are needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from legnn.experiments.planned import PlannedRun
from legnn.sweep import Executor, Outcome, Sweep, SweepProgress


def train_missing(
    missing: Callable[[], list[PlannedRun]],
    root: Path,
    executor: Executor,
    *,
    display: SweepProgress,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """Trains what `missing` returns until it returns nothing new, and returns the outcomes.

    A run that cannot be trained does not stop the others.
    """
    begun: set[PlannedRun] = set()
    outcomes: list[Outcome] = []
    while runs := [run for run in missing() if run not in begun]:
        begun.update(runs)
        display.total = len(begun)
        for outcome in Sweep(root, [run.trial for run in runs]).run(
            executor, on_event=display.on_event, should_stop=should_stop
        ):
            display.on_outcome(outcome)
            outcomes.append(outcome)
    return outcomes
