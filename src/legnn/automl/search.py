"""The search: candidates in the order of the portfolio, then local changes of the leaders, until the time is over."""

from __future__ import annotations

import math
import random
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from legnn.automl.candidate_runs import CandidateFolder, CandidateOutcome, CandidateTask, train_candidate
from legnn.automl.clock import Clock
from legnn.automl.halving import RUNGS, is_hopeless
from legnn.automl.space import complete, flatten, neighbors
from legnn.config import GraphFacts
from legnn.errors import InputError
from legnn.runs.task_server import Signals
from legnn.runs.worker_process import Failure, Worker
from legnn.runs.workers import carry_out

LEADERS = 4
"""So many of the best candidates are varied."""
LEAST_SECONDS = 1.0
"""With less time left for training, no candidate is begun."""
GRACE = 0.05
"""A candidate that has not ended this part of the budget after its deadline is ended with its process."""


MOST_DRAWS = 20
"""Draws of a local change until one is found that was not tried."""
LOCAL_CHANGE = re.compile(r".+~(?P<rank>\d+)-(?P<number>\d+)")
"""The name of a local change: that of the candidate it began with, the search that made it, and a number."""


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
    """Settings by name, the most promising first."""
    order: Sequence[str] | None = None
    """Names in the order in which they are trained; that of `candidates` if it is not given."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Settings that hold for every candidate."""
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    """Several searches share the candidates and the folder."""

    def candidate(self, name: str) -> CandidateFolder:
        """Returns the folder of a candidate."""
        return CandidateFolder(self.folder / "candidates" / name)

    def folders(self) -> dict[str, CandidateFolder]:
        """Returns the candidates that have a folder: in the order in which they are tried, then by name."""
        place = self.folder / "candidates"
        there = sorted(path.name for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
        names = dict.fromkeys([*(name for name in self.candidates if name in there), *there])
        return {name: self.candidate(name) for name in names}

    def mine(self) -> list[str]:
        """The candidates, begun or not, that this of several searches tries: no other one tries them."""
        order = list(self.candidates)
        names = dict.fromkeys([*order, *self.folders()])

        def owner(name: str) -> int:
            return order.index(name) if name in self.candidates else _rank_of(name)

        return [name for name in names if owner(name) % self.world_size == self.rank]


class Search:
    """Decides what is trained next, and pauses what is hopeless."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self.plan, self.clock = plan, clock
        mine = {name: plan.candidate(name) for name in plan.mine()}
        self._finished = {name: one.curve() for name, one in plan.folders().items() if one.state == "finished"}
        """Curves of the candidates that came to their end."""
        self._paused: dict[str, list[float]] = {}
        """Curves of those that were paused."""
        self._checked: dict[str, int] = {}
        """Rungs at which a candidate was compared with the others."""
        unfinished = {name: one.curve() for name, one in mine.items() if one.state == "begun"}
        for name, curve in unfinished.items():
            others = [other for key, other in unfinished.items() if key != name]
            if is_hopeless(curve, self._finished, others, plan.num_val):
                self._paused[name] = curve
        # those that were cut short come first
        cut_short = [name for name in unfinished if name not in self._paused]
        order = plan.candidates if plan.order is None else plan.order
        self._waiting = deque([*cut_short, *(name for name in order if _is_new(mine.get(name)))])
        self._changes = max((_number_of(name) for name in mine), default=-1) + 1
        """Local changes so far."""
        begun = [one.run.settings for one in plan.folders().values() if one.state in ("begun", "finished")]
        self._tried = {self._key(values) for values in (*plan.candidates.values(), *map(flatten, begun))}
        """What no local change repeats."""
        self._random = random.Random(f"{plan.seed} {plan.rank} {len(plan.folders())}")
        self._predict_seconds: list[float] = []

    def run(
        self,
        jobs: int,
        *,
        gpus: Sequence[str] = (),
        on_progress: Callable[[Sequence[Row]], None] = lambda rows: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Trains `jobs` candidates at a time, in as many processes, until the time is over."""

        def poll(busy: list[Worker[CandidateTask]]) -> None:
            self.clock.save()
            rows = self._watch(busy)
            on_progress(rows)

        carry_out(
            train_candidate,
            self._next,
            jobs,
            gpus=gpus,
            on_outcome=self._note,
            on_poll=poll,
            should_stop=should_stop,
        )
        self.clock.save(now=True)

    def train_here(self, name: str) -> None:
        """Trains a candidate in this process, whatever time is left, if it is one that can be."""
        values, folder = self.plan.candidates.get(name), self.plan.candidate(name)
        if values is None or folder.state in ("finished", "failed"):
            return
        task = CandidateTask(name, folder.path, self.plan.source, {**values, **self.plan.given}, math.inf)
        self._note(task, train_candidate(task, Signals()))

    @property
    def training_end(self) -> float:
        """When training ends, by `time.time`."""
        return self.clock.training_end(self._predict_seconds)

    def _next(self) -> CandidateTask | None:
        if self.training_end - time.time() < LEAST_SECONDS:
            return None
        if self._waiting:
            name = self._waiting.popleft()
            values = self.plan.candidates.get(name) or flatten(self.plan.candidate(name).run.settings)
        else:
            name, values = self._local_change()
            if not name:
                return None
        folder = self.plan.candidate(name).path
        values = {**values, **self.plan.given}
        return CandidateTask(name, folder, self.plan.source, values, self.training_end)

    def _local_change(self) -> tuple[str, Mapping[str, Any]]:
        """The name and settings of a candidate near one of the leaders; an empty name where there is none."""
        finished = {name: one for name, one in self.plan.folders().items() if one.state == "finished"}
        scores = {name: _val_accuracy(one) for name, one in finished.items()}
        leaders = sorted(scores, key=lambda name: -scores[name])[:LEADERS]
        if not leaders:
            return "", {}
        for _ in range(MOST_DRAWS):
            # the first is varied twice as often as the second
            origin = self._random.choices(leaders, [2.0**-k for k in range(len(leaders))])[0]
            own = _without_data(flatten(finished[origin].run.settings))
            for change in neighbors(own, self._random, 1, facts=self.plan.facts, fixed=[*self.plan.given]):
                if (key := self._key(change)) not in self._tried:
                    self._tried.add(key)
                    # a folder is made when another process begins: its name must not be given twice until then
                    name = f"{origin.split('~')[0]}~{self.plan.rank}-{self._changes}"
                    self._changes += 1
                    return name, change
        return "", {}

    def _key(self, values: Mapping[str, Any]) -> str:
        """The same for settings that train the same model."""
        values = {**values, **self.plan.given}
        with suppress(InputError):  # what cannot be trained with the settings that are given fails when it is tried
            values = complete(values, self.plan.facts)
        return repr(sorted(_without_data(values).items()))

    def _note(self, task: CandidateTask, outcome: CandidateOutcome | Failure) -> None:
        folder = self.plan.candidate(task.name)
        if isinstance(outcome, Failure):
            # one that was ended because it was late continues when there is more time
            if time.time() <= task.deadline and folder.state != "failed":
                folder.fail(outcome.why)
        elif outcome.is_paused:
            self._paused[task.name] = folder.curve()
        elif outcome.error is None:
            self._finished[task.name] = folder.curve()
            self._predict_seconds.append(outcome.predict_seconds)

    def _watch(self, busy: Sequence[Worker[CandidateTask]]) -> list[Row]:
        """Pauses what is hopeless, ends what is late, and returns the leaderboard so far."""
        late = max(2.0, GRACE * self.clock.budget)
        training = {one.task.name: one for one in busy}
        curves = {name: self.plan.candidate(name).curve() for name in training}
        for name, one in training.items():
            if time.time() > one.task.deadline + late:
                one.kill()
            mine = curves[name]
            rungs = sum(rung <= len(mine) for rung in RUNGS)
            if rungs > self._checked.get(name, 0):
                self._checked[name] = rungs
                others = [curve for other, curve in curves.items() if other != name]
                others += self._paused.values()
                if is_hopeless(mine, self._finished, others, self.plan.num_val):
                    one.pause()
        shown = {"finished": self._finished, "paused": self._paused, "training": curves}
        rows = {
            name: Row(name, state, curve[-1] if curve else None, len(curve))
            for state, found in shown.items()
            for name, curve in found.items()
        }
        return sorted(rows.values(), key=lambda row: -(row.val or 0.0))


def _without_data(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that depend on where a graph is from and how large it is."""
    return {name: value for name, value in values.items() if name not in ("data.source", "train.batch", "train.fanout")}


def _is_new(folder: CandidateFolder | None) -> bool:
    """Whether a candidate of this search, None for one of another, has not been begun."""
    return folder is not None and folder.state == "new"


def _rank_of(name: str) -> int:
    """Which of several searches made a local change; the first one has what is no local change."""
    found = LOCAL_CHANGE.fullmatch(name)
    return int(found["rank"]) if found else 0


def _number_of(name: str) -> int:
    """The number of a local change; -1 for another candidate."""
    found = LOCAL_CHANGE.fullmatch(name)
    return int(found["number"]) if found else -1


def _val_accuracy(folder: CandidateFolder) -> float:
    val = folder.run.result().val
    return 0.0 if val is None else val["accuracy"]
