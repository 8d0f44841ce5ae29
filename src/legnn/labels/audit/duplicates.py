"""Test nodes that are copies of training nodes: the same features, or the same features and neighbors."""

from __future__ import annotations

import numpy as np
import pandas as pd

from legnn.errors import plural
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.subject import Subject

ROWS = 1 << 14
"""Rows of features that are hashed together."""
COPIES = 0.01
"""The share of test nodes from which copies are no coincidence."""
LEAST_COPIES = 5
DISTINCT = 0.5
"""Where fewer rows of features are distinct, equal rows are nothing special."""

CHECK, TRIED = "copies across splits", "hash features, and features with neighbors, and look for test nodes in training"


def check_duplicates(subject: Subject) -> Finding:
    """Returns how many test nodes have the features, or the features and neighbors, of a training node."""
    graph = subject.graph
    train, test = graph.train_mask.numpy() & ~graph.test_mask.numpy(), graph.test_mask.numpy()
    if not test.any():
        return not_applicable(CHECK, TRIED, "no node is for testing")
    rows, is_empty = _hash_rows(graph.x.numpy())
    both = _mix(rows, _hash_neighbors(subject))
    labeled = train | test
    distinct = len(np.unique(rows[labeled])) / int(labeled.sum())
    same_row = test & ~is_empty & np.isin(rows, rows[train & ~is_empty])
    copied = test & ~is_empty & np.isin(both, both[train & ~is_empty])
    with_label = _mix(both, subject.y.astype(np.uint64))
    agreeing = copied & np.isin(with_label, with_label[train])
    tests = int(test.sum())
    leaks, doubts = [], []
    if copied.sum() >= max(LEAST_COPIES, COPIES * tests) and distinct >= DISTINCT:
        leaks.append(
            f"{plural(int(copied.sum()), 'test node')} of {tests:,} have the features and neighbors of a training "
            f"node, {int(agreeing.sum()):,} of them its label, too"
        )
    elif same_row.any():
        mine = _mix(rows, subject.y.astype(np.uint64))
        agrees = int((same_row & np.isin(mine, mine[train])).sum())
        doubts.append(
            f"{plural(int(same_row.sum()), 'test node')} of {tests:,} ({same_row.sum() / tests:.1%}) have the features "
            f"of a training node, {agrees:,} of them with its label, {int(copied.sum()):,} with its neighbors"
            + ("" if distinct >= DISTINCT else f"; few rows are distinct ({distinct:.0%}), so that is to be expected")
        )
    return conclude(CHECK, TRIED, tests, leaks=leaks, doubts=doubts, clean="no test node has the features of one")


def _hash_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`[M]` a hash of each row of features, and which rows are all zero."""
    factor = np.random.default_rng(0).integers(1, 2**63, x.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes, is_empty = np.empty(len(x), dtype=np.uint64), np.empty(len(x), dtype=bool)
    for start in range(0, len(x), ROWS):
        part = x[start : start + ROWS] + np.float32(0)  # -0 is 0
        bits = part.view(np.uint32).astype(np.uint64)
        # the bits are mixed before they are added: sums of multiples of few numbers would meet
        hashes[start : start + ROWS] = (_mix(bits, factor) * (bits > 0)).sum(1, dtype=np.uint64)
        is_empty[start : start + ROWS] = ~part.any(1)
    return hashes, is_empty


def _hash_neighbors(subject: Subject) -> np.ndarray:
    """`[M]` a hash of the neighbors of each node, itself left out."""
    adjacency = subject.graph.adjacency
    of_node = pd.util.hash_array(np.arange(subject.graph.num_nodes))
    row, col = adjacency.row.numpy(), adjacency.col.numpy()
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(of_node[col] * (row != col), dtype=np.uint64)])
    rowptr = adjacency.rowptr.numpy()
    return sums[rowptr[1:]] - sums[rowptr[:-1]]


def _mix(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A hash of both."""
    mixed = (one ^ (one >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + other * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(29))
