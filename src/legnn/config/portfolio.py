"""The candidates in the order in which they are worth trying, as `benchmarks.portfolio` learned it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from legnn.config.facts import GraphFacts
from legnn.typed_json import read_json

FILE = Path(__file__).with_name("portfolio.json")


@dataclass(frozen=True, kw_only=True)
class Portfolio:
    """Names of candidates, the most promising first."""

    command: str
    """The command that learned it."""
    graphs: list[str]
    """The graphs it was learned from."""
    names: list[str]
    typed: list[str]
    """Candidates for several node types, which alternate with the others on such graphs."""
    default: list[str]
    """Candidates of LEGNN, the best over all graphs first: the settings of `legnn.train`."""
    typed_default: list[str]
    """Candidates of LEGNN for several node types."""

    def order(self, facts: GraphFacts) -> list[str]:
        """Returns the candidates for a graph, the most promising first."""
        if facts.num_types == 1:
            return list(self.names)
        return [name for pair in zip_longest(self.names, self.typed) for name in pair if name is not None]

    def defaults(self, facts: GraphFacts) -> list[str]:
        """Returns the candidates that the default settings are taken from: one list for all graphs with one type."""
        return [*(self.typed_default if facts.num_types > 1 else []), *self.default]


@cache
def learned_portfolio() -> Portfolio:
    """Returns the portfolio of the package."""
    return read_json(FILE, Portfolio)
