"""Trains the runs that a plan misses, several at a time, and says how long the rest will take."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from legnn.errors import InputError
from legnn.experiments.planned import PlannedRun
from legnn.experiments.worker import Outcome, train_in_process
from legnn.runs.worker_process import Failure
from legnn.runs.workers import carry_out


@dataclass
class Progress:
    """How far the runs of a plan are."""

    total: int
    jobs: int
    done: int = 0
    failed: list[Outcome] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of the finished runs, by data set."""
    waiting: dict[PlannedRun, None] = field(default_factory=dict)

    def seconds_left(self) -> float | None:
        """An estimate from the finished runs of each data set, or of all where it has none; None before the first."""
        known = [value for values in self.seconds.values() for value in values]
        if not known:
            return None
        mean = sum(known) / len(known)
        means = {source: sum(values) / len(values) for source, values in self.seconds.items() if values}
        return sum(means.get(run.source, mean) for run in self.waiting) / min(self.jobs, max(len(self.waiting), 1))

    def add(self, outcome: Outcome) -> None:
        """Counts a run that has ended."""
        self.waiting.pop(outcome.run, None)
        if outcome.error is not None:
            self.failed.append(outcome)
        elif not outcome.is_stopped:
            self.done += 1
            self.seconds[outcome.run.source].append(outcome.seconds)


def train_missing(
    missing: Callable[[], list[PlannedRun]],
    root: Path,
    jobs: int,
    *,
    gpus: Sequence[str] = (),
    on_progress: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Trains what `missing` returns until it returns nothing that was not tried, and returns the last progress.

    `jobs` runs train at a time in as many processes, which share `gpus` if there are some. A run that cannot be trained
    does not stop the others. With `should_stop`, runs in flight write a checkpoint and end; what is left is done by the
    next call.
    """
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    progress = Progress(0, jobs)
    begun: set[PlannedRun] = set()

    def refill() -> list[PlannedRun]:
        """Runs that became known since it was last asked."""
        runs = [run for run in missing() if run not in begun]
        begun.update(runs)
        progress.total += len(runs)
        progress.waiting.update(dict.fromkeys(runs))
        return runs

    waiting = deque(refill())

    def next_run() -> PlannedRun | None:
        return waiting.popleft() if waiting else None

    def note(run: PlannedRun, outcome: Outcome | Failure) -> None:
        progress.add(Outcome(run, 0.0, error=outcome.why) if isinstance(outcome, Failure) else outcome)
        # the settings that a row goes on with are known when those it tried are finished; others may still train
        if not waiting:
            waiting.extend(refill())

    carry_out(
        partial(train_in_process, root=root),
        next_run,
        jobs,
        gpus=gpus,
        on_outcome=note,
        on_poll=lambda busy: on_progress(progress),
        should_stop=should_stop,
    )
    on_progress(progress)
    return progress
