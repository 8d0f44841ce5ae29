"""The portfolio: which candidates to try and in which order, learned from real graphs (`benchmarks.portfolio`)."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from legnn.config.presets import GraphFacts


@lru_cache(maxsize=1)
def learned() -> dict[str, Any]:
    """Returns what `portfolio.json` holds, with the command that wrote it."""
    content: dict[str, Any] = json.loads((files("legnn.config") / "portfolio.json").read_text(encoding="utf-8"))
    return content


def portfolio_order(facts: GraphFacts) -> list[str]:
    """Returns the names of the candidates to try on a graph, the most promising first."""
    order: list[str] = learned()["few" if facts.has_few_labels else "many"]
    typed: list[str] = learned()["typed"] if facts.num_types > 1 else []
    # one of each kind in turn
    mixed = [name for pair in zip(typed, order, strict=False) for name in pair]
    return list(dict.fromkeys([*mixed, *typed, *order]))
