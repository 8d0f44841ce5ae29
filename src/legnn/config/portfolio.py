"""The candidates in the order in which they are worth trying, as `benchmarks.portfolio` learned it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from legnn.config.facts import GraphFacts
from legnn.typed_json import as_kind, parse_json

FILE = Path(__file__).with_name("portfolio.json")
HOMOPHILOUS = 0.5


@dataclass(frozen=True, kw_only=True)
class Default:
    """A rule of the defaults: where `conditions` hold, the first of `candidates` is the setting to train with."""

    conditions: dict[str, bool]
    """Names and values of `conditions_of`."""
    candidates: list[str]
    """The best first."""

    def holds(self, conditions: Mapping[str, bool]) -> bool:
        """Whether all conditions are as the rule says; one that is not known is not."""
        return all(conditions.get(name) is value for name, value in self.conditions.items())

    def explain(self, facts: GraphFacts) -> str:
        """Returns in words what the rule depends on, and what of it is known of the graph."""
        if not self.conditions:
            return "they did best over all graphs"
        found = []
        if self.conditions.get("typed"):
            found.append("several node types")
        if "few_labels" in self.conditions:
            kind = "few" if self.conditions["few_labels"] else "many"
            found.append(f"{kind} labels a class ({facts.labels_a_class:.0f})")
        if "homophilous" in self.conditions and facts.train_homophily is not None:
            kind = "mostly within" if self.conditions["homophilous"] else "mostly between"
            found.append(f"edges {kind} classes ({facts.train_homophily:.2f} within, among training nodes)")
        if "counts_features" in self.conditions:
            found.append("features like word counts" if self.conditions["counts_features"] else "dense features")
        return f"they did best on graphs with {' and '.join(found)}"


@dataclass(frozen=True, kw_only=True)
class Portfolio:
    """Names of candidates, the ones to try first at the beginning."""

    command: str
    """What learned it."""
    graphs: list[str]
    """The graphs it was learned from."""
    few: list[str]
    many: list[str]
    """Where there are few and many labels a class."""
    typed: list[str]
    """Candidates for several node types, which take turns with the others there."""
    defaults: list[Default]
    """The first that holds decides; the last has no conditions."""

    @classmethod
    def from_json(cls, text: str) -> Portfolio:
        """Reads what `to_json` wrote."""
        return as_kind(parse_json(text.encode()), cls, "the portfolio")

    def to_json(self) -> str:
        """Returns it as text."""
        return json.dumps(asdict(self), indent=1) + "\n"

    def order(self, facts: GraphFacts) -> list[str]:
        """Returns the candidates for a graph, those for several node types in turns with the others if it has them."""
        names = self.few if facts.has_few_labels else self.many
        if facts.num_types == 1:
            return list(names)
        return [name for pair in zip_longest(names, self.typed) for name in pair if name is not None]

    def rules(self, facts: GraphFacts) -> list[Default]:
        """Returns the rules that hold for a graph, the most specific first."""
        conditions = conditions_of(facts)
        return [one for one in self.defaults if one.holds(conditions)]


def conditions_of(facts: GraphFacts) -> dict[str, bool]:
    """Returns what defaults decide by; whether a graph is homophilous is missing where that is not known."""
    found = {"few_labels": facts.has_few_labels, "counts_features": facts.counts_features}
    found["typed"] = facts.num_types > 1
    homophily = facts.train_homophily
    return found if homophily is None else found | {"homophilous": homophily >= HOMOPHILOUS}


@cache
def learned_portfolio() -> Portfolio:
    """Returns the portfolio of the package."""
    return Portfolio.from_json(FILE.read_text())
