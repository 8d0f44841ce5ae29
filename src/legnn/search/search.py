"""The search: a sweep over the candidates of a sampler, of which the hopeless are paused, until the time is used up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from legnn.config import Settings
from legnn.runs.folder import RunFolder
from legnn.search.budget import Budget
from legnn.search.halving import RUNGS, is_hopeless
from legnn.search.samplers import Proposal, Sampler
from legnn.search.space import Values
from legnn.sweep.executors import GRACE_SECONDS
from legnn.sweep.plan import Plan, Trial
from legnn.sweep.sweep import is_finished
from legnn.sweep.tasks import FAILURE, Event, Outcome

CANDIDATES = "candidates"
"""Folder of the candidates in that of the search."""
LEAST_SECONDS = 1.0
"""With less time left for training, no candidate is begun."""


@dataclass
class Search:
    """Decides what is trained next."""

    folder: Path
    data: str
    values: Values
    """Settings of every candidate."""
    sampler: Sampler
    budget: Budget
    num_val: int
    most_trials: int | None = None
    predict_seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._scores_read: dict[str, float] = {}
        planned = Plan(self.folder).runs
        self._known: dict[str, dict[str, Any]] = {
            name.removeprefix(f"{CANDIDATES}/"): run.values for name, run in planned.items()
        }
        """Settings of all candidates so far."""
        self._curves = {name: best_so_far(self.path(name)) for name in self._known}
        """The best validation accuracy after each epoch."""
        unfinished = [name for name in self._known if self.state(name) == "begun"]
        self._waiting = deque(name for name in unfinished if not self._is_hopeless(name))

    def path(self, name: str) -> Path:
        """Returns the run folder of a candidate."""
        return self.folder / CANDIDATES / name

    def state(self, name: str) -> str:
        """Returns `finished`, `failed` or `begun`."""
        if is_finished(self.path(name), held_out=True):
            return "finished"
        return "failed" if (self.path(name) / FAILURE).is_file() else "begun"

    def finished(self) -> list[str]:
        """Returns the names of the candidates that came to their end, in the order in which they began."""
        return [name for name in self._known if self.state(name) == "finished"]

    def failures(self) -> list[str]:
        """Returns why candidates could not be trained."""
        failed = [name for name in self._known if self.state(name) == "failed"]
        return [f"{name}: {(self.path(name) / FAILURE).read_text(encoding='utf-8')}" for name in failed]

    def trials(self) -> Iterator[Trial | None]:
        """Yields what is trained next: paused candidates that are worth it, then new ones."""
        while self.budget.training_seconds(self.predict_seconds) - GRACE_SECONDS > LEAST_SECONDS:
            name = self._waiting.popleft() if self._waiting else self._propose()
            yield None if name is None else self.trial(name)

    def _propose(self) -> str | None:
        if self.most_trials is not None and len(self._known) >= self.most_trials:
            return None
        proposal = self.sampler.propose(self._known, self._scores())
        return None if proposal is None else self.add(proposal)

    def add(self, proposal: Proposal) -> str:
        """Adds a candidate, and returns its name."""
        self._known[proposal.name] = {**proposal.values, **self.values}
        return proposal.name

    def trial(self, name: str, *, is_limited: bool = True) -> Trial:
        """Returns a candidate, as far as the next rung; unless `is_limited`, to its end whatever time it takes."""
        epochs = len(self._curves.get(name, ()))
        left = self.budget.training_seconds(self.predict_seconds) - GRACE_SECONDS
        return Trial(
            name=f"{CANDIDATES}/{name}",
            data=self.data,
            settings=Settings(preset=self.sampler.preset, values=self._known[name]),
            epochs=next((rung for rung in RUNGS if rung > epochs), None) if is_limited else None,
            held_out=True,
            deadline=time.monotonic() + left if is_limited else None,
        )

    def on_event(self, event: Event) -> None:
        """Notes the validation accuracy of an epoch."""
        self.budget.save()
        if event.log is not None:
            curve = self._curves.setdefault(event.trial.removeprefix(f"{CANDIDATES}/"), [])
            # a run that was killed comes to the epochs after its checkpoint again
            del curve[event.log.epoch - 1 :]
            curve.append(max(event.log.val.get("accuracy", 0.0), *curve[-1:]) if curve else event.log.val["accuracy"])

    def note(self, outcome: Outcome) -> None:
        """Decides whether a paused candidate goes on."""
        name = outcome.trial.removeprefix(f"{CANDIDATES}/")
        if outcome.state == "finished" and outcome.predict_seconds:
            self.predict_seconds.append(outcome.predict_seconds)
        elif outcome.state == "paused" and len(self._curves.get(name, ())) in RUNGS and not self._is_hopeless(name):
            self._waiting.appendleft(name)

    def _is_hopeless(self, name: str) -> bool:
        finished = {other: self._curves[other] for other in self.finished() if other in self._curves}
        others = [curve for other, curve in self._curves.items() if other != name and other not in finished]
        return is_hopeless(self._curves.get(name, []), finished, others, self.num_val)

    def _scores(self) -> dict[str, float]:
        for name in self.finished():
            if name not in self._scores_read:
                val = RunFolder(self.path(name)).result().val
                self._scores_read[name] = 0.0 if val is None else val["accuracy"]
        return self._scores_read


def best_so_far(folder: Path) -> list[float]:
    """Returns the best validation accuracy of a run after each epoch."""
    best: list[float] = []
    for log in RunFolder(folder).logs():
        best.append(max(log["val"]["accuracy"], *best[-1:]) if best else log["val"]["accuracy"])
    return best
