"""A finished run or ensemble with its predictions, from which a page is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from legnn.report import bands
from legnn.report.nodes import NodeTable
from legnn.report.projection import MOST_POINTS, HiddenStates, NodeMap, hidden_states, project
from legnn.runs import Predictor
from legnn.runs.evaluation import evaluate_probabilities

MOST_NODES = 100_000
"""Number of nodes above which a page has only those of its map."""

Say = Callable[[str], None]


@dataclass(eq=False)
class RunSource:
    """A finished run or ensemble, from which the data of sections are built.

    Args:
        ids: nodes to explain; the most interesting ones for None.
        checked: the table of checked labels, if there is one.
        say: called with a line before each step that takes long.
    """

    run: Predictor
    name: str
    ids: Sequence[str] | None
    checked: pd.DataFrame | None
    device: str
    say: Say

    def __post_init__(self) -> None:
        self.say(f"{self.name}: predicting every node")
        self.graph, p = self.run.probabilities(device=self.device)
        if len(self.run.members) == 1:
            # it is read once
            self.run = self.run.with_members([replace(self.run.members[0], graph=self.graph)])
        self.evaluation = evaluate_probabilities(self.graph, p[self.graph.labeled_nodes])
        self.table = NodeTable(self.graph, p.double().numpy())
        self.degree = bands.degrees(self.graph)[self.table.rows]

    @cached_property
    def explained_rows(self) -> np.ndarray:
        """Rows of the table whose predictions are explained."""
        return self.table.choose() if self.ids is None else self.table.find(self.ids)

    @cached_property
    def states(self) -> HiddenStates:
        """Representations of nodes and labels."""
        return hidden_states(self.run, self.table.p, self.device)

    @cached_property
    def node_map(self) -> NodeMap:
        """Points of nodes."""
        self.say(f"{self.name}: projecting {min(len(self.states.nodes), MOST_POINTS):,} nodes")
        return project(self.states, self.explained_rows)

    @cached_property
    def page_rows(self) -> np.ndarray:
        """Rows of the table that are on the page."""
        every = len(self.table.rows)
        return np.arange(every) if every <= MOST_NODES else self.node_map.nodes

    @cached_property
    def page_row(self) -> np.ndarray:
        """`[n]` rows of the page of the rows of the table, -1 for none."""
        row = np.full(len(self.table.rows), -1)
        row[self.page_rows] = np.arange(len(self.page_rows))
        return row

    @property
    def scored_nodes(self) -> str:
        """The nodes of the evaluation, in words."""
        kind = "test nodes" if self.evaluation.nodes == "test" else "labeled nodes outside the training split"
        return f"{self.evaluation.num_nodes:,} {kind}"
