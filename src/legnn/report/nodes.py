"""Nodes of a page, and the ones that are worth a closer look."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

import numpy as np

from legnn.data import GraphData
from legnn.data.splits import TEST, TRAIN
from legnn.errors import InputError, did_you_mean
from legnn.report.payload import NO_CLASS, Array, NodeColumns

TOP = 3
EXPLAINED = 10
"""Nodes that a page explains by itself: each costs a prediction of the whole graph for each removed part."""


class NodeTable:
    """All nodes of the labeled type, in the order of the graph; every attribute has a row for each of them.

    Args:
        p: `[M, C]` probabilities of all nodes of the graph.
    """

    def __init__(self, graph: GraphData, p: np.ndarray) -> None:
        self.graph = graph
        self.rows = np.arange(graph.num_nodes) if graph.target_index is None else graph.target_index.numpy()
        """Indices in the graph."""
        self.p = p[self.rows]
        self.ids = [str(node_id) for node_id in graph.node_id[self.rows].tolist()]
        self.row_of = {node_id: row for row, node_id in enumerate(self.ids)}
        self.y, self.split = graph.y.numpy()[self.rows], graph.split.numpy()[self.rows]
        self.predicted, self.confidence = self.p.argmax(1), self.p.max(1, initial=0)
        is_test = (self.split == TEST) & (self.y >= 0)
        self.scored = is_test if is_test.any() else (self.split != TRAIN) & (self.y >= 0)
        """The labeled test nodes, or without any all labeled nodes but training nodes."""

    def choose(self, count: int = EXPLAINED) -> np.ndarray:
        """Returns the rows worth a closer look, the most interesting first.

        Alternating: the surest errors, the least sure nodes, and the surest right node of each class.
        """
        scored = np.flatnonzero(self.scored) if self.scored.any() else np.arange(len(self.rows))
        known = self.y[scored] >= 0
        wrong, right = (scored[known & ((self.predicted == self.y)[scored] == is_right)] for is_right in (False, True))
        errors = wrong[np.argsort(-self.confidence[wrong], kind="stable")]
        unsure = scored[np.argsort(self.confidence[scored], kind="stable")]
        by_class = (right[self.predicted[right] == c] for c in range(self.p.shape[1]))
        sure = [rows[np.argmax(self.confidence[rows])] for rows in by_class if len(rows)]
        candidates = chain.from_iterable(zip_longest(errors[:count], unsure[:count], sure))
        chosen = dict.fromkeys(int(row) for row in candidates if row is not None)
        return np.array(list(chosen)[:count], dtype=np.int64)

    def find(self, ids: Sequence[str]) -> np.ndarray:
        """Returns the rows of nodes by their ids; raises `InputError` for an unknown one."""
        for node_id in ids:
            if node_id not in self.row_of:
                close = did_you_mean(node_id, list(self.row_of)[:10_000])
                raise InputError(f"there is no node {node_id!r}{close}")
        return np.array([self.row_of[node_id] for node_id in ids], dtype=np.int64)

    def columns(self, rows: np.ndarray, degree: np.ndarray) -> NodeColumns:
        """Returns the columns of some `rows` for a page; `degree` `[n]`."""
        top = min(TOP, self.p.shape[1])
        p = self.p[rows]
        order = np.argsort(-p, axis=1, kind="stable")[:, :top]
        y = self.y[rows]
        return NodeColumns(
            # a table cannot have line breaks in ids, data in memory can
            ids="\n".join(self.ids[row].replace("\n", " ") for row in rows.tolist()),
            count=len(rows),
            top=top,
            y=Array.of(np.where(y < 0, NO_CLASS, y), "u2"),
            split=Array.of(self.split[rows], "u1"),
            classes=Array.of(order, "u2"),
            p=Array.of_fractions(np.take_along_axis(p, order, 1)),
            degree=Array.of(degree[rows], "u4"),
        )
