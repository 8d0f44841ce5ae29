"""The search: candidates in the order of the portfolio, then local changes of the leaders, until the time is over."""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from legnn.automl.candidate_runs import CandidateFolder, CandidateOutcome, CandidateTask, train_candidate
from legnn.automl.clock import Clock
from legnn.automl.halving import RUNGS, is_hopeless
from legnn.automl.space import flatten, neighbors, without_idle
from legnn.config import GraphFacts
from legnn.runs.workers import Failure, Worker, carry_out

LEADERS = 4
"""So many of the best candidates are varied."""
LEAST_SECONDS = 1.0
"""With less time left for training, no candidate is begun."""
GRACE = 0.05
"""A candidate that has not ended this part of the budget after its deadline is ended with its process."""


class Row(NamedTuple):
    """A candidate as the live leaderboard shows it."""

    name: str
    state: str
    val: float | None
    """The best validation accuracy so far."""
    epochs: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is searched, and where."""

    folder: Path
    """Candidates are folders in its folder `candidates`."""
    source: str
    """Name or folder of the data."""
    facts: GraphFacts
    num_val: int
    """Validation nodes."""
    candidates: Mapping[str, Mapping[str, Any]]
    """Settings by name, in the order in which they are tried."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Settings that hold for every candidate."""
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    """Several searches share the candidates and the folder."""

    def candidate(self, name: str) -> CandidateFolder:
        """Returns the folder of a candidate."""
        return CandidateFolder(self.folder / "candidates" / name)

    def begun(self) -> list[str]:
        """The candidates that have a folder, in the order of their names."""
        place = self.folder / "candidates"
        return sorted(path.name for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


class Search:
    """Decides what is trained next, and pauses what is hopeless."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self.plan, self.clock = plan, clock
        states = {name: plan.candidate(name).state for name in plan.begun()}
        # those that were cut short come first; under several processes each begins with its own share
        unfinished = [name for name, state in states.items() if state == "begun" and plan.rank == 0]
        mine = list(plan.candidates)[plan.rank :: plan.world_size]
        self._waiting = deque([*unfinished, *(name for name in mine if states.get(name, "new") == "new")])
        self._random = random.Random(f"{plan.seed} {plan.rank} {len(states)}")
        self._predict_seconds: list[float] = []
        self._curves: dict[str, list[float]] = {}
        """Of the candidates that have ended or were paused."""
        self._checked: dict[str, int] = {}
        """Rungs at which a candidate was compared with the others."""
        self.paused: set[str] = set()

    def run(
        self,
        jobs: int,
        *,
        on_progress: Callable[[Sequence[Row]], None] = lambda rows: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Trains candidates in `jobs` processes until the time for training is over."""

        def poll(busy: list[Worker[CandidateTask, CandidateOutcome]]) -> None:
            self.clock.save()
            rows = self._watch(busy)
            on_progress(rows)

        carry_out(train_candidate, self._next, jobs, on_outcome=self._note, on_poll=poll, should_stop=should_stop)
        self.clock.save(now=True)

    @property
    def training_end(self) -> float:
        """When training ends, by `time.time`."""
        return self.clock.training_end(statistics.fmean(self._predict_seconds) if self._predict_seconds else 0.0)

    def _next(self) -> CandidateTask | None:
        if self.training_end - time.time() < LEAST_SECONDS:
            return None
        if self._waiting:
            name = self._waiting.popleft()
            values = self.plan.candidates.get(name) or without_idle(flatten(self.plan.candidate(name).run.settings))
        else:
            name, values = self._local_change()
            if not name:
                return None
        folder = self.plan.candidate(name).path
        values = {**values, **self.plan.given}
        return CandidateTask(name, folder, self.plan.source, values, self.training_end)

    def _local_change(self) -> tuple[str, Mapping[str, Any]]:
        """The name and settings of a candidate near one of the leaders; an empty name where there is none."""
        finished = {name: self.plan.candidate(name) for name in self.plan.begun()}
        scores = {name: _val_accuracy(one) for name, one in finished.items() if one.state == "finished"}
        leaders = sorted(scores, key=lambda name: -scores[name])[:LEADERS]
        if not leaders:
            return "", {}
        # the first is varied twice as often as the second
        origin = self._random.choices(leaders, [2.0**-k for k in range(len(leaders))])[0]
        values = flatten(finished[origin].run.settings)
        own = {name: value for name, value in values.items() if name not in ("source", "batch", "fanout")}
        changes = neighbors(own, self._random, 1, facts=self.plan.facts, fixed=[*self.plan.given])
        number = len(finished)
        base = origin.split("~")[0]
        return (f"{base}~{self.plan.rank}-{number}", changes[0]) if changes else ("", {})

    def _note(self, task: CandidateTask, outcome: CandidateOutcome | Failure) -> None:
        folder = self.plan.candidate(task.name)
        if isinstance(outcome, Failure):
            is_late = time.time() > task.deadline
            if not is_late:
                folder.fail(outcome.why)
            return
        self._curves[task.name] = folder.curve()
        if outcome.is_paused:
            self.paused.add(task.name)
        elif outcome.error is None:
            self._predict_seconds.append(outcome.predict_seconds)

    def _watch(self, busy: Sequence[Worker[CandidateTask, CandidateOutcome]]) -> list[Row]:
        """Pauses what is hopeless, ends what is late, and returns the leaderboard so far."""
        late = max(2.0, GRACE * self.clock.budget)
        training = {one.task.name: one for one in busy if one.task is not None}
        curves = {name: self.plan.candidate(name).curve() for name in training}
        finished = {name: curve for name, curve in self._curves.items() if name not in self.paused and curve}
        for name, one in training.items():
            assert one.task is not None
            if time.time() > one.task.deadline + late:
                one.kill()
            mine = curves[name]
            rungs = sum(rung <= len(mine) for rung in RUNGS)
            if rungs > self._checked.get(name, 0):
                self._checked[name] = rungs
                others = [curve for other, curve in curves.items() if other != name]
                others += [self._curves[other] for other in self.paused]
                if is_hopeless(mine, finished, others, self.plan.num_val):
                    one.pause()
        ended = {**self._curves, **curves}
        states = {name: "paused" if name in self.paused else "finished" for name in self._curves}
        states |= dict.fromkeys(training, "training")
        rows = [Row(name, states[name], curve[-1] if curve else None, len(curve)) for name, curve in ended.items()]
        return sorted(rows, key=lambda row: -(row.val or 0.0))


def _val_accuracy(folder: CandidateFolder) -> float:
    val = folder.run.result().val
    return 0.0 if val is None else val.accuracy
