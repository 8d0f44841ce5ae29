"""Trains the runs that a plan misses, several at a time, and says how long the rest will take."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from legnn.errors import InputError
from legnn.experiments import worker
from legnn.experiments.planned import PlannedRun
from legnn.experiments.worker import Outcome

RUNS_A_PROCESS = 40
"""A process is replaced after this many runs: each leaves some memory of the device behind."""
POLL_SECONDS = 0.5
CLOSE_SECONDS = 10.0
"""How long a process may take to end by itself."""


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


def default_jobs(device: str) -> int:
    """Several small runs share a GPU; on a CPU each takes a core."""
    import torch

    cores = os.cpu_count() or 1
    on_gpu = device != "cpu" and torch.cuda.is_available()
    return max(1, min(cores, 8)) if on_gpu else cores


def train_missing(
    missing: Callable[[], list[PlannedRun]],
    root: Path,
    jobs: int,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Trains what `missing` returns until it returns nothing that was not tried, and returns the last progress.

    A run that cannot be trained does not stop the others. With `should_stop`, runs in flight write a checkpoint and
    end; what is left is done by the next call.
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

    threads = max((os.cpu_count() or 1) // jobs, 1)
    waiting = deque(refill())
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    try:
        while waiting or busy:
            is_stopping = should_stop()
            while waiting and len(busy) < jobs and not is_stopping:
                one = idle.pop() if idle else _Worker(root, threads)
                one.train(waiting.popleft())
                busy.append(one)
            if is_stopping:
                waiting.clear()
                for one in busy:
                    one.stop()
            on_progress(progress)
            ready = wait([one.connection for one in busy], POLL_SECONDS)
            for one in [one for one in busy if one.connection in ready]:
                progress.add(one.outcome())
                busy.remove(one)
                if one.is_worn:
                    one.close()
                else:
                    idle.append(one)
            # the settings that a row goes on with are known when those it tried are finished; others may still train
            if ready and not waiting and not is_stopping:
                waiting.extend(refill())
    finally:
        for one in (*busy, *idle):
            one.close()
    on_progress(progress)
    return progress


class _Worker:
    """A process that trains, and the connection to it.

    Not a `ProcessPoolExecutor`: one process that is killed breaks the whole of it.
    """

    def __init__(self, root: Path, threads: int) -> None:
        # a process that is forked cannot use a GPU
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=worker.serve, args=(theirs, root, threads), daemon=True)
        self._process.start()
        theirs.close()
        self._run: PlannedRun | None = None
        self._runs = 0

    @property
    def is_worn(self) -> bool:
        """Whether another process should take its place."""
        return self._runs >= RUNS_A_PROCESS or not self._process.is_alive()

    def train(self, run: PlannedRun) -> None:
        """Begins a run."""
        self._run, self._runs = run, self._runs + 1
        with suppress(OSError):  # of a process that has died: `outcome` says so
            self.connection.send(run)

    def outcome(self) -> Outcome:
        """How the run ended, when the connection is ready."""
        assert self._run is not None
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Outcome(self._run, 0.0, error=f"its process was ended ({why}), perhaps for want of memory")

    def stop(self) -> None:
        """Ends training after the epoch in flight."""
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGTERM)

    def close(self) -> None:
        """Ends the process."""
        self.connection.close()
        self._process.join(CLOSE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
