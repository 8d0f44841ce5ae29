"""Test nodes that are copies of training nodes: the same features, or the same features and neighbors."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pandas as pd

from legnn.errors import plural
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.subject import Subject

COPIES = 0.05
"""The share of test nodes from which copies are a leak; a few, such as two authors of one paper, are in real graphs."""
LEAST_COPIES = 5
DISTINCT = 0.5
"""Where fewer rows of features are distinct, equal rows are nothing special."""

CHECK, TRIED = "copies across splits", "hash features, and features with neighbors, and look for test nodes in training"


def check_duplicates(subject: Subject) -> Finding:
    """Returns how many test nodes have the features, or the features and neighbors, of a training node."""
    graph = subject.graph
    nodes = (graph.train_mask | graph.test_mask).nonzero().flatten().numpy()
    test = graph.test_mask.numpy()[nodes]
    if not test.any():
        return not_applicable(CHECK, TRIED, "no node is for testing")
    rows, is_empty = _hash_rows(graph.x[nodes].numpy())
    both = _mix(rows, _hash_neighbors(subject)[nodes])
    y = subject.y[nodes].astype(np.uint64)
    distinct = len(np.unique(rows)) / len(rows)
    train, test = ~test & ~is_empty, test & ~is_empty

    def in_training(hashes: np.ndarray) -> np.ndarray:
        return test & np.isin(hashes, hashes[train])

    same_row, copied = in_training(rows), in_training(both)
    tests = int(graph.test_mask.sum())
    leaks, doubts = [], []
    if copied.sum() >= max(LEAST_COPIES, COPIES * tests) and distinct >= DISTINCT:
        leaks.append(
            f"{plural(int(copied.sum()), 'test node')} of {tests:,} have the features and neighbors of a training "
            f"node, {int(in_training(_mix(both, y)).sum()):,} of them its label, too"
        )
    elif same_row.any():
        agrees = int(in_training(_mix(rows, y)).sum())
        doubts.append(
            f"{plural(int(same_row.sum()), 'test node')} of {tests:,} ({same_row.sum() / tests:.1%}) have the features "
            f"of a training node, {agrees:,} of them with its label, {int(copied.sum()):,} with its neighbors"
            + ("" if distinct >= DISTINCT else f"; few rows are distinct ({distinct:.0%}), so that is to be expected")
        )
    return conclude(CHECK, TRIED, tests, leaks=leaks, doubts=doubts, clean="no test node has the features of one")


def _hash_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`[n]` a hash of each row of features, and which rows are all zero."""
    rows = np.ascontiguousarray(x + np.float32(0))  # -0 is 0
    hashes = np.fromiter((int.from_bytes(blake2b(row, digest_size=8).digest(), "little") for row in rows), np.uint64)
    return hashes, np.asarray(~rows.any(1))


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
