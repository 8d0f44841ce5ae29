"""An Optuna study: which settings the next trial has, and what the trials came to."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from legnn.automl.space import CONSTRAINED, SPACE, Tunable, flatten, is_allowed
from legnn.config import GraphFacts, ResolvedSettings, Settings
from legnn.config.paper_tables import SEARCHED, SEARCHED_AS_TRAIN
from legnn.errors import InputError

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

STARTUP_TRIALS = 4
"""Trials that are trained to their end before any is pruned."""
WARMUP_EPOCHS = 20
"""No trial is pruned sooner."""
REPORT_EVERY = 5
"""Epochs between two reports to the pruner."""

Space = Literal["full", "paper"]
Values = Mapping[str, Any]
Pick = Callable[[Tunable, Sequence[Any], Any], Any]
"""Picks a value of a setting from a list, given the one that it has without a choice."""
State = Literal["complete", "pruned", "failed", "running"]


class Trial(NamedTuple):
    """Settings that were tried, and what they came to."""

    number: int
    state: State
    chosen: dict[str, Any]
    """The settings that were varied, by name."""
    val: float | None
    """Validation accuracy of the best epoch."""
    seconds: float
    why: str = ""
    """Why it failed, or which trial had the same settings."""


class Tuned(NamedTuple):
    """What a study is about: the settings that are fixed, and the graph that the others are chosen for."""

    settings: Settings
    """What is given in them is not varied."""
    facts: GraphFacts
    space: Space
    seed: int

    def tunables(self) -> dict[str, Tunable]:
        """The settings that are varied, by name."""
        varied = SPACE if self.space == "full" else self._paper()
        return {name: one for name, one in varied.items() if name not in self.settings.values}

    def _paper(self) -> dict[str, Tunable]:
        source = str(self.settings.values.get("data.source"))
        grid = SEARCHED.get(source, SEARCHED["ogbn-arxiv"]) | SEARCHED_AS_TRAIN
        return {name: SPACE[name]._replace(values=values) for name, values in grid.items()}

    def resolve(self, chosen: Values) -> ResolvedSettings:
        """Returns complete settings with those that a trial chose."""
        given = {**self.settings.values, **chosen}
        return Settings(preset=self.settings.preset, values=given).resolve(self.facts)

    def allowed(self, one: Tunable, chosen: Values) -> Sequence[Any]:
        """The values of a setting that go with those chosen so far; all where what is given goes with none."""
        if one.name not in CONSTRAINED:
            return one.values
        fitting = []
        for value in one.values:
            try:
                settings = flatten(self.resolve({**chosen, one.name: value}))
            except InputError:
                continue
            if is_allowed(settings):
                fitting.append(value)
        return fitting or one.values

    def choose(self, pick: Pick) -> dict[str, Any]:
        """Returns a value for every setting that matters, each picked among those that go with the ones before it."""
        chosen: dict[str, Any] = {}
        present = flatten(self.resolve(chosen))
        for one in self.tunables().values():
            if one.applies(present):
                chosen[one.name] = pick(one, self.allowed(one, chosen), present[one.name])
                present = flatten(self.resolve(chosen))
        return chosen

    def grid(self) -> list[dict[str, Any]]:
        """All combinations, in an order drawn by the seed."""
        present = flatten(self.resolve({}))
        axes = {name: one.values for name, one in self.tunables().items() if one.applies(present)}
        every = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        random.Random(self.seed).shuffle(every)
        return every

    def identity(self) -> dict[str, Any]:
        """What a study keeps to know whether it is the same."""
        given = dict(sorted(self.settings.values.items()))
        return {"space": self.space, "seed": self.seed, "preset": self.settings.preset, "given": given}


class Nearest:
    """Picks what is there already, and keeps it as parameters of Optuna."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def __call__(self, one: Tunable, values: Sequence[Any], present: Any) -> Any:
        """The value nearest to `present`."""
        value = one._replace(values=values).nearest(present)
        self.parameters[_key(one, values)] = values.index(value) if one.is_ordered else value
        return value


class Suggested:
    """Picks what Optuna suggests; numbers by their place in the list, of which it knows the order."""

    def __init__(self, trial: optuna.Trial) -> None:
        self.trial = trial

    def __call__(self, one: Tunable, values: Sequence[Any], present: Any) -> Any:
        """The value suggested."""
        if one.is_ordered:
            return values[self.trial.suggest_int(_key(one, values), 0, len(values) - 1)]
        return self.trial.suggest_categorical(_key(one, values), list(values))


def _key(one: Tunable, values: Sequence[Any]) -> str:
    # a parameter of Optuna has the same values in every trial
    return one.name if list(values) == list(one.values) else f"{one.name} of {', '.join(map(str, values))}"


class Study:
    """The trials of a search; `journal.open_study` opens the one in a folder."""

    def __init__(self, study: optuna.Study, storage: BaseStorage, tuned: Tuned) -> None:
        self._study, self._storage, self._tuned = study, storage, tuned
        self._grid = tuned.grid() if tuned.space == "paper" else None

    @property
    def size(self) -> int | None:
        """How many trials there can be; None without an end."""
        return None if self._grid is None else len(self._grid)

    @property
    def seconds(self) -> float:
        """Seconds spent on trials that have ended."""
        return sum(trial.seconds for trial in self.trials())

    def trials(self) -> list[Trial]:
        """All trials that have begun."""
        return [_trial(one) for one in self._begun()]

    def _begun(self) -> list[optuna.trial.FrozenTrial]:
        from optuna.trial import TrialState

        return [one for one in self._study.get_trials(deepcopy=False) if one.state != TrialState.WAITING]

    def unfinished(self) -> list[Running]:
        """Trials that an interruption left; those that had no settings yet have failed."""
        import optuna

        found = []
        for one in self._begun():
            if one.state == optuna.trial.TrialState.RUNNING:
                running = Running(self._study, one.number, optuna.Trial(self._study, self._id(one.number)))
                if "chosen" in one.user_attrs:
                    found.append(running)
                else:
                    running.fail("it was interrupted before it had settings", 0.0)
        return found

    def _id(self, number: int) -> int:
        study = self._storage.get_study_id_from_name(self._study.study_name)
        return self._storage.get_trial_id_from_study_id_trial_number(study, number)

    def next(self) -> Running:
        """Begins a trial: the settings that are there without a choice first, then what Optuna suggests."""
        import optuna

        trials = self._study.get_trials(deepcopy=False)
        number = len(self._begun())
        # by the number of the trial: a study that was interrupted suggests the same as one that was not
        self._study.sampler = optuna.samplers.TPESampler(seed=(self._tuned.seed * 1_000_003 + number) % 2**32)
        if len(trials) == number and (self._grid is not None or number == 0):
            self._study.enqueue_trial(self._planned(number))
        trial = self._study.ask()
        chosen = self._tuned.choose(Suggested(trial))
        trial.set_user_attr("chosen", chosen)
        return Running(self._study, trial.number, trial)

    def _planned(self, number: int) -> dict[str, Any]:
        nearest = Nearest()
        if self._grid is None:
            self._tuned.choose(nearest)
            return nearest.parameters
        for name, value in self._grid[number].items():
            one = self._tuned.tunables()[name]
            nearest(one, one.values, value)
        return nearest.parameters

    def earlier(self, running: Running) -> Trial | None:
        """The trial that had the same settings and has ended."""
        ended = (one for one in self.trials() if one.state != "running")
        return next((one for one in ended if one.chosen == running.chosen), None)


class Running:
    """A trial that has begun."""

    def __init__(self, study: optuna.Study, number: int, trial: optuna.Trial) -> None:
        self._study, self.number, self._trial = study, number, trial
        known = study.get_trials(deepcopy=False)[number]
        self._last = max(known.intermediate_values, default=0)
        self._pruned_at: float = known.user_attrs.get("pruned_at", math.inf)
        """The epoch in which it was hopeless."""

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that are varied, by name."""
        return dict(self._trial.user_attrs["chosen"])

    def report(self, epoch: int, best: float) -> None:
        """Decides whether to prune, after an epoch of which `best` is the best validation accuracy so far."""
        if epoch % REPORT_EVERY == 0 and epoch > self._last:
            self._last = epoch
            self._trial.report(best, epoch)
            if self._trial.should_prune():
                # kept: a run that was killed before its end comes to this epoch again
                self._pruned_at = epoch
                self._attribute(pruned_at=epoch)

    def is_pruned(self, epoch: int) -> bool:
        """Whether it ends after an epoch because it is hopeless."""
        return epoch >= self._pruned_at

    def complete(self, val: float, seconds: float, why: str = "") -> None:
        """Ends the trial with its validation accuracy."""
        self._attribute(seconds=round(seconds, 3), why=why, val=val)
        self._study.tell(self.number, val)

    def prune(self, val: float, seconds: float, why: str = "") -> None:
        """Ends a trial that was hopeless."""
        from optuna.trial import TrialState

        self._attribute(seconds=round(seconds, 3), why=why, val=val)
        self._study.tell(self.number, state=TrialState.PRUNED)

    def fail(self, why: str, seconds: float) -> None:
        """Ends a trial that could not be trained."""
        from optuna.trial import TrialState

        self._attribute(seconds=round(seconds, 3), why=why)
        self._study.tell(self.number, state=TrialState.FAIL)

    def end_as(self, other: Trial) -> None:
        """Ends the trial as another with the same settings has ended."""
        why = f"same settings as trial {other.number}"
        if other.state == "failed" or other.val is None:
            self.fail(f"{why}: {other.why}", 0.0)
        elif other.state == "pruned":
            self.prune(other.val, 0.0, why)
        else:
            self.complete(other.val, 0.0, why)

    def _attribute(self, **values: Any) -> None:
        for name, value in values.items():
            self._trial.set_user_attr(name, value)


def _trial(one: optuna.trial.FrozenTrial) -> Trial:
    from optuna.trial import TrialState

    states: dict[TrialState, State] = {
        TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed",
        TrialState.RUNNING: "running",
    }  # fmt: skip
    kept = one.user_attrs
    seconds, why = float(kept.get("seconds", 0.0)), str(kept.get("why", ""))
    return Trial(one.number, states[one.state], dict(kept.get("chosen", {})), kept.get("val"), seconds, why)
