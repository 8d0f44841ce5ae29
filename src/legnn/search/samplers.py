"""Samplers propose the settings of the next candidate: a portfolio and changes of its leaders, Optuna, or a grid."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from legnn.config import GraphFacts, Settings
from legnn.config.paper_tables import SEARCHED, SEARCHED_AS_TRAIN
from legnn.errors import InputError
from legnn.search.space import CONSTRAINED, SPACE, Tunable, Values, complete, is_allowed, neighbors

if TYPE_CHECKING:
    import optuna

SpaceName = Literal["wide", "paper"]
SamplerName = Literal["portfolio", "tpe", "grid"]

LEADERS = 4
"""So many of the best candidates are changed."""
MOST_DRAWS = 20
"""Proposals that repeat a candidate, before a sampler has no other."""


class Proposal(NamedTuple):
    """A candidate: its name, and settings besides those of the user."""

    name: str
    values: Values


class Sampler(Protocol):
    """Proposes candidates."""

    @property
    def preset(self) -> str:
        """Name of the preset that chooses the settings that a proposal leaves open."""
        ...

    def propose(self, known: Mapping[str, Values], scores: Mapping[str, float]) -> Proposal | None:
        """Returns the next candidate; None if there is none now.

        Args:
            known: settings of the candidates so far, those of the user included.
            scores: validation accuracy of those that are finished.
        """
        ...


@dataclass(frozen=True)
class Portfolio:
    """Proposes the candidates of a portfolio in their order, then local changes of the leaders."""

    candidates: Mapping[str, Values]
    fixed: Values
    facts: GraphFacts
    seed: int
    preset = "simple"

    def propose(self, known: Mapping[str, Values], scores: Mapping[str, float]) -> Proposal | None:
        """Returns the next candidate, as `Sampler.propose` does."""
        for name, values in self.candidates.items():
            if name not in known:
                return Proposal(name, values)
        leaders = sorted(scores, key=lambda name: -scores[name])[:LEADERS]
        if not leaders:
            return None
        keys = {self._key(values) for values in known.values()}
        generator = random.Random(f"{self.seed} {len(known)}")
        for _ in range(MOST_DRAWS):
            # the first is changed twice as often as the second
            origin = generator.choices(leaders, [2.0**-k for k in range(len(leaders))])[0]
            for change in neighbors(_of_model(known[origin]), generator, 1, facts=self.facts, fixed=[*self.fixed]):
                if self._key(change) not in keys:
                    return Proposal(f"{origin.split('~')[0]}~{len(known)}", change)
        return None

    def _key(self, values: Values) -> str:
        """The same for settings that train the same model."""
        values = {**values, **self.fixed}
        with suppress(InputError):  # settings that do not fit those of the user fail when they are trained
            values = complete(values, self.facts)
        return repr(sorted(_of_model(values).items()))


def _of_model(values: Values) -> dict[str, Any]:
    """Settings without those that depend on where a graph is from and how large it is."""
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("data.") and name not in ("train.batch", "train.fanout")
    }


@dataclass(frozen=True)
class Space:
    """The settings that are varied, and the graph that the others are chosen for."""

    settings: Settings
    """Settings in it are not varied."""
    facts: GraphFacts
    name: SpaceName

    def tunables(self) -> dict[str, Tunable]:
        """Returns the settings that are varied, by name."""
        varied: Mapping[str, Tunable] = SPACE
        if self.name == "paper":
            source = str(self.settings.values.get("data.source"))
            grid = SEARCHED.get(source, SEARCHED["ogbn-arxiv"]) | SEARCHED_AS_TRAIN
            varied = {name: SPACE[name]._replace(values=values) for name, values in grid.items()}
        return {name: tunable for name, tunable in varied.items() if name not in self.settings.values}

    def complete(self, chosen: Values) -> dict[str, Any]:
        """Returns all settings by name, with those that were chosen."""
        return self.settings.override(chosen).resolve(self.facts).flat()

    def allowed(self, tunable: Tunable, chosen: Values) -> Sequence[Any]:
        """Returns the values of a setting that go with those chosen so far; all of them if none does."""
        if tunable.name not in CONSTRAINED:
            return tunable.values
        fitting = []
        for value in tunable.values:
            with suppress(InputError):
                if is_allowed(self.complete({**chosen, tunable.name: value})):
                    fitting.append(value)
        return fitting or tunable.values

    def choose(self, pick: Callable[[Tunable, Sequence[Any], Any], Any]) -> dict[str, Any]:
        """Returns a value for every setting that matters.

        Args:
            pick: picks the value of a setting from a list, given the one that it has without a choice.
        """
        chosen: dict[str, Any] = {}
        present = self.complete(chosen)
        for tunable in self.tunables().values():
            if tunable.applies(present):
                chosen[tunable.name] = pick(tunable, self.allowed(tunable, chosen), present[tunable.name])
                present = self.complete(chosen)
        return chosen


@dataclass(frozen=True)
class SpaceSampler:
    """Base of the samplers of a space."""

    space: Space
    seed: int

    @property
    def preset(self) -> str:
        """The preset of the settings that are not varied."""
        return self.space.settings.preset


class Grid(SpaceSampler):
    """Proposes all combinations, in an order drawn by the seed."""

    def propose(self, known: Mapping[str, Values], scores: Mapping[str, float]) -> Proposal | None:
        """Returns the next candidate, as `Sampler.propose` does."""
        present = self.space.complete({})
        axes = {name: tunable.values for name, tunable in self.space.tunables().items() if tunable.applies(present)}
        every = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        random.Random(self.seed).shuffle(every)
        number = len(known)
        return Proposal(f"trial-{number}", every[number]) if number < len(every) else None


class Tpe(SpaceSampler):
    """Proposes the candidates that Optuna's TPE sampler suggests, the present settings first."""

    def propose(self, known: Mapping[str, Values], scores: Mapping[str, float]) -> Proposal | None:
        """Returns the next candidate, as `Sampler.propose` does."""
        number = len(known)
        for draw in range(MOST_DRAWS if number else 1):
            values = self.space.choose(_Nearest({}))
            if number:
                study = self._study(known, scores, seed=self.seed * 1_000_003 + number * MOST_DRAWS + draw)
                values = self.space.choose(_Suggested(study.ask()))
            if not any(values.items() <= earlier.items() for earlier in known.values()):
                return Proposal(f"trial-{number}", values)
        return None

    def _study(self, known: Mapping[str, Values], scores: Mapping[str, float], seed: int) -> optuna.Study:
        """A study with the finished candidates: a search that was interrupted suggests the same as one that was not."""
        import optuna

        optuna.logging.set_verbosity(logging.WARNING)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed % 2**32))
        for name, score in scores.items():
            nearest = _Nearest(known[name])
            self.space.choose(nearest)
            study.add_trial(
                optuna.trial.create_trial(params=nearest.params, distributions=nearest.distributions, value=score)
            )
        return study


class _Nearest:
    """Picks values that are there, or the present ones, and keeps them as parameters of Optuna."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.params: dict[str, Any] = {}
        self.distributions: dict[str, Any] = {}

    def __call__(self, tunable: Tunable, values: Sequence[Any], present: Any) -> Any:
        from optuna.distributions import CategoricalDistribution, IntDistribution

        name = _parameter(tunable, values)
        value = tunable._replace(values=values).nearest(self._values.get(tunable.name, present))
        self.params[name] = values.index(value) if tunable.is_ordered else value
        last = len(values) - 1
        self.distributions[name] = IntDistribution(0, last) if tunable.is_ordered else CategoricalDistribution(values)
        return value


class _Suggested:
    """Picks values that Optuna suggests; numbers by their position in the list, of which it knows the order."""

    def __init__(self, trial: optuna.Trial) -> None:
        self._trial = trial

    def __call__(self, tunable: Tunable, values: Sequence[Any], present: Any) -> Any:
        name = _parameter(tunable, values)
        if tunable.is_ordered:
            return values[self._trial.suggest_int(name, 0, len(values) - 1)]
        return self._trial.suggest_categorical(name, list(values))


def _parameter(tunable: Tunable, values: Sequence[Any]) -> str:
    # a parameter of Optuna has the same values in every trial
    if list(values) == list(tunable.values):
        return tunable.name
    return f"{tunable.name} of {', '.join(map(str, values))}"


def check_optuna() -> None:
    """Raises `InputError` if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise InputError("the sampler tpe needs the package optuna; install it with: pip install legnn[tune]") from None
