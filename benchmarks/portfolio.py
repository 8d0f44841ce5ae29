"""Learns the order of the candidates and the defaults from a repository of predictions, on validation nodes alone.

    python -m benchmarks.portfolio --repository FOLDER [--size 16] [--write]

**Order.** The first `ALONE` candidates are those that are, on average, least below the best one of a graph. Then,
greedy, the next is the one with which an ensemble of those before it gains most: on half of the validation nodes the
ensemble adds each candidate, plain or after Correct & Smooth, if it gains there; its accuracy is that on the other
half; both halves take both parts. Differences are divided by how far the best candidate on a graph is above the median
one, so that no graph counts more because its accuracies differ more, and averaged over seeds, then over graphs.
Candidates that need several node types have an order of their own.

**Defaults.** The candidates of LEGNN that are, on average, least below the best one; graphs with several node types
have their own.

`--write` puts the result into the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.predictions import SMOOTH, Key, Repository, Validation
from legnn.config.candidates import CANDIDATES
from legnn.config.portfolio import FILE, Portfolio
from legnn.typed_json import to_json, write_json

SIZE = 16
RANKED = 5
"""Candidates among the defaults."""
SAME = {"debian-hetero": "debian"}
"""A graph in another form: both are left out together."""
MOST_NODES = 1000
"""Of more validation nodes, so many are enough to order candidates by."""
LEAST_SPREAD = 0.005
ALONE = 4
"""Candidates that come first for what they reach alone: a small budget trains no more."""
DEFAULT_GROUP = "legnn"


class Gains:
    """Accuracies of ensembles of candidates on validation nodes, kept: portfolios without one graph or another share
    most of them.

    Args:
        names: The candidates that may be chosen; all that have a run, if None.
        smooth: Whether Correct & Smooth may be on top of them.
    """

    def __init__(
        self, validations: Iterable[Validation], names: Collection[str] | None = None, *, smooth: bool = True
    ) -> None:
        self.validations = {validation.key: validation for validation in validations}
        self.names, self._smooth = names, smooth
        self._halves: dict[Key, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        self._states: dict[tuple[Key, tuple[str, ...]], list[_State]] = {}
        self._spread: dict[Key, float] = {}

    def entries(self, key: Key, names: Iterable[str]) -> list[str]:
        """Those of the candidates, in their order, that there are on a graph."""
        entries = [entry for name in names for entry in self.validations[key].entries(name)]
        return entries if self._smooth else [entry for entry in entries if not entry.endswith(SMOOTH)]

    def accuracy(self, key: Key, chosen: tuple[str, ...]) -> float:
        """That of the ensemble of the chosen candidates, in their order, on the halves that did not decide; without
        any, that of the best candidate."""
        if not chosen:
            return max(self.validations[key].accuracies.values())
        return fmean(state.outside for state in self._of(key, chosen))

    def gain(self, chosen: tuple[str, ...], name: str, key: Key) -> float:
        """What another candidate adds to the accuracy, in spreads."""
        return (self.accuracy(key, (*chosen, name)) - self.accuracy(key, chosen)) / self.spread(key)

    def with_run(self, name: str, keys: Iterable[Key]) -> list[Key]:
        """Those of the keys that have a run of the candidate."""
        return [key for key in keys if name in self.validations[key].seconds]

    def regret(self, name: str, key: Key) -> float:
        """How far a candidate is below the best one, in spreads."""
        accuracies = self.validations[key].accuracies
        return (max(accuracies.values()) - accuracies[name]) / self.spread(key)

    def spread(self, key: Key) -> float:
        """How far the best candidate is above the median one."""
        if key not in self._spread:
            accuracies = list(self.validations[key].accuracies.values())
            self._spread[key] = max(max(accuracies) - float(np.median(accuracies)), LEAST_SPREAD)
        return self._spread[key]

    def _of(self, key: Key, chosen: tuple[str, ...]) -> list[_State]:
        if not chosen:
            return [_State(), _State()]
        states = self._states.get((key, chosen))
        if states is None:
            states = self._of(key, chosen[:-1])
            for entry in self.entries(key, chosen[-1:]):
                parts = self._parts(key, entry)
                states = [state.joined(parts[half], parts[1 - half]) for half, state in enumerate(states)]
            self._states[key, chosen] = states
        return states

    def _parts(self, key: Key, entry: str) -> tuple[np.ndarray, np.ndarray]:
        """Twice `[C, n / 2]`: the probabilities with a node's own class in place 0."""
        halves = self._halves.setdefault(key, {})
        if entry not in halves:
            validation = self.validations[key]
            nodes = np.random.default_rng(0).permutation(len(validation.y))[:MOST_NODES]
            p, y = validation.p(entry)[nodes], validation.y[nodes]
            at = np.arange(len(y))
            of_own_class = p[at, y]
            p[at, y] = p[:, 0]
            p[:, 0] = of_own_class
            columns = p.T.astype(np.float16)
            halves[entry] = np.ascontiguousarray(columns[:, ::2]), np.ascontiguousarray(columns[:, 1::2])
        first, second = halves[entry]
        return first.astype(np.float32), second.astype(np.float32)


class _State:
    """An ensemble: sums of probabilities where it decides and where it is tried, and its accuracies on both."""

    def __init__(self, deciding: np.ndarray | None = None, scored: np.ndarray | None = None) -> None:
        self._deciding, self._scored = deciding, scored
        self.inside = 0.0 if deciding is None else _accuracy(deciding)
        self.outside = 0.0 if scored is None else _accuracy(scored)

    def joined(self, deciding: np.ndarray, scored: np.ndarray) -> _State:
        """With another member, or this one alone, if that is better where it decides."""
        alone = _State(deciding, scored)
        if self._deciding is None or self._scored is None:
            return alone
        return max(
            self, _State(self._deciding + deciding, self._scored + scored), alone, key=lambda state: state.inside
        )


def _accuracy(of_class: np.ndarray) -> float:
    return float((of_class[0] > of_class[1:].max(0)).mean())


def learn_order(gains: Gains, keys: Sequence[Key], names: Iterable[str], size: int) -> list[str]:
    """Returns candidates in the order in which they are worth trying."""
    ranked = rank_candidates(gains, keys, names)
    chosen, left = ranked[: min(ALONE, size)], ranked[ALONE:]
    while left and len(chosen) < size:
        gain = {name: mean_over_graphs(gains, keys, name, partial(gains.gain, tuple(chosen))) for name in left}
        best = max(left, key=gain.__getitem__)
        left.remove(best)
        chosen.append(best)
    return chosen


def rank_candidates(gains: Gains, keys: Sequence[Key], names: Iterable[str]) -> list[str]:
    """Returns the candidates, the one first that is least below the best of each graph.

    One without a run on most of the graphs cannot be judged, and is left out.
    """
    graphs = {key.data for key in keys}
    judged = [name for name in names if 2 * len({key.data for key in gains.with_run(name, keys)}) > len(graphs)]
    regret = {name: mean_over_graphs(gains, keys, name, gains.regret) for name in judged}
    return sorted(regret, key=regret.__getitem__)


def mean_over_graphs(gains: Gains, keys: Sequence[Key], name: str, value: Callable[[str, Key], float]) -> float:
    """The mean over graphs of the mean over those of their splits and seeds that have a run of the candidate."""
    by_graph: dict[str, list[float]] = {}
    for key in gains.with_run(name, keys):
        by_graph.setdefault(key.data, []).append(value(name, key))
    return fmean(map(fmean, by_graph.values()))


def learn_default(gains: Gains, keys: Sequence[Key], *, is_typed: bool) -> list[str]:
    """Returns the candidates of LEGNN, the one first that is least below the best of each graph."""
    names = [name for name in trained_names(gains, keys) if CANDIDATES[name].group == DEFAULT_GROUP]
    return rank_candidates(gains, keys, [name for name in names if CANDIDATES[name].is_typed == is_typed])[:RANKED]


def without_graph(keys: Sequence[Key], data: str) -> list[Key]:
    """The keys of other graphs."""
    return [key for key in keys if SAME.get(key.data, key.data) != SAME.get(data, data)]


def learn(gains: Gains, keys: Sequence[Key], size: int = SIZE, command: str = "") -> Portfolio:
    """Returns the portfolio that the runs with these keys speak for."""
    typed = [key for key in keys if gains.validations[key].facts.num_types > 1]
    names = trained_names(gains, keys)
    plain = [name for name in names if not CANDIDATES[name].is_typed]
    return Portfolio(
        command=command,
        graphs=list(dict.fromkeys(key.data for key in keys)),
        names=learn_order(gains, keys, plain, size),
        typed=learn_order(gains, typed, [name for name in names if CANDIDATES[name].is_typed], size),
        default=learn_default(gains, keys, is_typed=False),
        typed_default=learn_default(gains, typed, is_typed=True),
    )


def trained_names(gains: Gains, keys: Iterable[Key]) -> list[str]:
    """The candidates with a run, in the order of `CANDIDATES`."""
    trained = {name for key in keys for name in gains.validations[key].seconds}
    return [name for name in CANDIDATES if name in trained and (gains.names is None or name in gains.names)]


def missing_runs(gains: Gains) -> list[str]:
    """One line for each graph and split that lacks some of the candidates that others have."""
    names = trained_names(gains, gains.validations)
    lines = []
    for key, validation in gains.validations.items():
        fitting = [name for name in names if validation.facts.num_types > 1 or not CANDIDATES[name].is_typed]
        lacking = [name for name in fitting if name not in validation.seconds]
        if lacking:
            lines.append(f"{key.data} {key.split}-{key.seed}: {len(lacking)} of {len(fitting)} runs are missing")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True, type=Path, help="folder of the repository")
    parser.add_argument("--size", type=int, default=SIZE, help="candidates of each order")
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name} of the package")
    options = parser.parse_args(arguments)
    gains = Gains(Repository(options.repository).validations)
    keys = list(gains.validations)
    command = f"python -m benchmarks.portfolio --repository FOLDER --size {options.size} --write"
    portfolio = learn(gains, keys, options.size, command)
    for line in missing_runs(gains):
        print(line, file=sys.stderr)
    print(to_json(portfolio), end="")
    if options.write:
        write_json(FILE, portfolio)


if __name__ == "__main__":
    main()
