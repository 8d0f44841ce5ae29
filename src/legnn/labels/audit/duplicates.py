"""Test nodes that are copies of training nodes: the same features, or the same features and neighbors."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pandas as pd

from legnn.errors import plural
from legnn.labels.audit.findings import Check, Finding
from legnn.labels.audit.subject import Subject

COPIES = 0.05
"""The share of test nodes from which copies are a leak; a few, such as two authors of one paper, are in many graphs."""
LEAST_COPIES = 5
DISTINCT = 0.5
"""Share of distinct rows of features below which equal rows are nothing special."""

CHECK = Check("copies across splits", "hash features, and features with neighbors, and look for test nodes in training")


def check_duplicates(subject: Subject) -> Finding:
    """Returns how many test nodes have the features, or the features and neighbors, of a training node."""
    graph = subject.graph
    nodes = (graph.train_mask | graph.test_mask).nonzero().flatten().numpy()
    is_test = graph.test_mask.numpy()[nodes]
    tests = int(is_test.sum())
    if not tests:
        return CHECK.skip("no node is for testing")
    x = graph.x[nodes].numpy()
    rows, y = _hash_rows(x), subject.y[nodes].astype(np.uint64)
    rows_and_neighbors = _mix(rows, _hash_neighbors(subject)[nodes])
    has_features = x.any(1)

    def number_in_training(hashes: np.ndarray) -> int:
        return int(np.isin(hashes[is_test & has_features], hashes[~is_test & has_features]).sum())

    same_row, copied = number_in_training(rows), number_in_training(rows_and_neighbors)
    distinct = len(np.unique(rows)) / len(rows)
    leaks, warnings = [], []
    if copied >= max(LEAST_COPIES, COPIES * tests) and distinct >= DISTINCT:
        leaks.append(
            f"{plural(copied, 'test node')} of {tests:,} have the features and neighbors of a training "
            f"node, {number_in_training(_mix(rows_and_neighbors, y)):,} of them its label, too"
        )
    elif same_row:
        warnings.append(
            f"{plural(same_row, 'test node')} of {tests:,} ({same_row / tests:.1%}) have the features "
            f"of a training node, {number_in_training(_mix(rows, y)):,} of them with its label, "
            f"{copied:,} with its neighbors"
            + ("" if distinct >= DISTINCT else f"; few rows are distinct ({distinct:.0%}), so that is to be expected")
        )
    return CHECK.conclude(tests, leaks=leaks, warnings=warnings, clean="no test node has the features of one")


def _hash_rows(x: np.ndarray) -> np.ndarray:
    """`[n]` a hash of each row of features."""
    rows = np.ascontiguousarray(x + np.float32(0))  # -0 is 0
    return np.fromiter((int.from_bytes(blake2b(row, digest_size=8).digest(), "little") for row in rows), np.uint64)


def _hash_neighbors(subject: Subject) -> np.ndarray:
    """`[M]` a hash of the neighbors of each node, without itself."""
    adjacency = subject.graph.adjacency
    of_node = pd.util.hash_array(np.arange(subject.graph.num_nodes))
    row, col = adjacency.row.numpy(), adjacency.col.numpy()
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(of_node[col] * (row != col), dtype=np.uint64)])
    rowptr = adjacency.rowptr.numpy()
    return sums[rowptr[1:]] - sums[rowptr[:-1]]


def _mix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """`[n]` a hash of both."""
    mixed = (first ^ (first >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + second * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(29))
