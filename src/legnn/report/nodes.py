"""The nodes of a page: what is known of each of them, and which are worth a closer look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from legnn.data import GraphData
from legnn.data.splits import TEST, TRAIN
from legnn.errors import InputError, did_you_mean
from legnn.report.encoding import pack, pack_fraction

MOST_NODES = 100_000
"""Of a larger graph, the page knows only the nodes of its map."""
TOP = 3
CHOSEN = 20
NONE = 65535
"""In the place of an unknown class."""


@dataclass(frozen=True, eq=False)
class NodeTable:
    """All nodes of the labeled type, in the order of the graph."""

    graph: GraphData
    rows: np.ndarray
    """`[n]` their indices in the graph."""
    p: np.ndarray
    """`[n, C]` probabilities."""

    @classmethod
    def of(cls, graph: GraphData, probabilities: np.ndarray) -> NodeTable:
        """Returns the table of the probabilities `[M, C]` of all nodes of a graph."""
        rows = np.arange(graph.num_nodes) if graph.target_index is None else graph.target_index.numpy()
        return cls(graph, rows, probabilities[rows])

    @cached_property
    def id(self) -> np.ndarray:
        """`[n]`."""
        return self.graph.node_id[self.rows]

    @cached_property
    def y(self) -> np.ndarray:
        """`[n]` classes, -1 where unknown."""
        return self.graph.y.numpy()[self.rows]

    @cached_property
    def predicted(self) -> np.ndarray:
        """`[n]` classes."""
        return self.p.argmax(1)

    @cached_property
    def confidence(self) -> np.ndarray:
        """`[n]` the probability of the predicted class."""
        return self.p.max(1, initial=0)

    @cached_property
    def split(self) -> np.ndarray:
        """`[n]` the split of each node."""
        return self.graph.split.numpy()[self.rows]

    @cached_property
    def scored(self) -> np.ndarray:
        """`[n]` bool: whom scores are of, test nodes or, without any, all labeled nodes but training nodes."""
        is_test = (self.split == TEST) & (self.y >= 0)
        return is_test if is_test.any() else (self.y >= 0) & (self.split != TRAIN)

    def choose(self, count: int = CHOSEN) -> np.ndarray:
        """Returns the rows worth a closer look, the most interesting first.

        In turn: the surest errors, the least sure nodes, and the surest right node of each class.
        """
        scored = np.flatnonzero(self.scored) if self.scored.any() else np.arange(len(self.rows))
        known = self.y[scored] >= 0
        wrong, right = (scored[known & ((self.predicted == self.y)[scored] == is_right)] for is_right in (False, True))
        errors = wrong[np.argsort(-self.confidence[wrong], kind="stable")]
        unsure = scored[np.argsort(self.confidence[scored], kind="stable")]
        by_class = (right[self.predicted[right] == c] for c in range(self.p.shape[1]))
        sure = [own[np.argmax(self.confidence[own])] for own in by_class if len(own)]
        found: dict[int, None] = {}
        for one in chain.from_iterable(zip_longest(errors[:count], unsure[:count], sure)):
            if one is not None and len(found) < count:
                found.setdefault(int(one))
        return np.array(list(found), dtype=np.int64)

    def find(self, ids: Sequence[str]) -> np.ndarray:
        """Returns the rows of nodes by their ids; raises `InputError` for one that there is not."""
        place = {str(one): k for k, one in enumerate(self.id.tolist())}
        for one in ids:
            if one not in place:
                raise InputError(f"there is no node {one!r}{did_you_mean(one, list(place)[:10_000])}")
        return np.array([place[one] for one in ids], dtype=np.int64)

    def pack(self, kept: np.ndarray, degree: np.ndarray) -> dict[str, Any]:
        """Returns the columns of the rows `kept` as a page reads them; `degree` `[n]`."""
        top = min(TOP, self.p.shape[1])
        p = self.p[kept]
        order = np.argsort(-p, axis=1, kind="stable")[:, :top]
        y = self.y[kept]
        return {
            # an id may hold any character but this one, which a table cannot
            "ids": "\n".join(str(one).replace("\n", " ") for one in self.id[kept].tolist()),
            "count": len(kept),
            "of": len(self.rows),
            "top": top,
            "y": pack(np.where(y < 0, NONE, y), "u2"),
            "split": pack(self.split[kept], "u1"),
            "classes": pack(order, "u2"),
            "p": pack_fraction(np.take_along_axis(p, order, 1)),
            "degree": pack(degree[kept], "u4"),
        }
