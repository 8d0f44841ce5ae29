"""Features that are statistics of labels: of neighbors, or of nodes with the same category, test labels among them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy import sparse

from legnn.labels.audit.columns import feature_columns, table_columns
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.rules import LEAST_NODES
from legnn.labels.audit.subject import Subject

SAME = 0.999
"""Correlation of two columns that are the same but for their scale."""
COLUMNS = 256
"""Features that are correlated together."""

CHECK = "features made of test labels"
TRIED = (
    "compare features with means and counts of the labels of neighbors and of categories, with and without test labels"
)


def check_encodings(subject: Subject) -> Finding:
    """Returns which features are a statistic of labels that only test labels complete."""
    tests = len(subject.test)
    if tests < LEAST_NODES:
        return not_applicable(CHECK, TRIED, f"fewer than {LEAST_NODES} nodes are for testing")
    columns = feature_columns(subject)
    features = np.stack([column.values[:tests] for column in columns], 1).astype(np.float32)
    leaks: dict[int, str] = {}
    for words, encoded in _encodings(subject):
        hidden, known = (_largest_correlation(features, one) for one in encoded)
        for k in np.flatnonzero((hidden >= SAME) & (known < SAME)).tolist():
            leaks.setdefault(k, f"{columns[k].name} is {words}, test labels included")
    clean = "none is one that test labels complete"
    return conclude(CHECK, TRIED, len(columns), leaks=list(leaks.values()), clean=clean)


def _encodings(subject: Subject) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Statistics of labels at the test nodes, `[n, k]` with test labels and without: what they are, and both."""
    graph, test = subject.graph, subject.test
    labels = [_one_hot(subject, mask) for mask in (subject.y >= 0, graph.train_mask.numpy())]
    order = np.arange(graph.num_classes, dtype=np.float32)[:, None]
    edges = _edges_to(subject, test)
    of_neighbors = [(edges @ one).toarray() for one in labels]
    yield "a count of the labels of neighbors", of_neighbors
    yield "a share of the labels of neighbors", [_shares(one) for one in of_neighbors]
    yield "a mean of the labels of neighbors", [_shares(one) @ order for one in of_neighbors]
    # all labeled nodes, not a sample: a mean is of all of them
    nodes = np.concatenate([test, np.setdiff1d(np.flatnonzero(subject.y >= 0), test)])
    for column in table_columns(subject, nodes):
        values = np.unique(column.values, return_inverse=True)[1]
        grouped = sparse.csr_matrix((np.ones(len(nodes)), (values, np.arange(len(nodes)))))
        of_category = [(grouped @ one[nodes]).toarray()[values[: len(test)]] for one in labels]
        yield f"a share of the labels of {column.name}", [_shares(one) for one in of_category]
        yield f"a mean of the labels of {column.name}", [_shares(one) @ order for one in of_category]


def _edges_to(subject: Subject, nodes: np.ndarray) -> sparse.csr_matrix:
    """`[n, M]` the edges to `nodes`, without self-loops, which would show each node its own label."""
    adjacency, count = subject.graph.adjacency, subject.graph.num_nodes
    present = (adjacency.row != adjacency.col).numpy().astype(np.float32)
    edges = sparse.csr_matrix((present, adjacency.col.numpy(), adjacency.rowptr.numpy()), shape=(count, count))
    return edges[nodes]


def _one_hot(subject: Subject, mask: np.ndarray) -> sparse.csr_matrix:
    nodes = np.flatnonzero(mask & (subject.y >= 0))
    shape = (subject.graph.num_nodes, subject.graph.num_classes)
    return sparse.csr_matrix((np.ones(len(nodes), dtype=np.float32), (nodes, subject.y[nodes])), shape=shape)


def _shares(count: np.ndarray) -> np.ndarray:
    return count / np.maximum(count.sum(1, keepdims=True), 1)


def _largest_correlation(features: np.ndarray, encoded: np.ndarray) -> np.ndarray:
    """`[F]` the largest correlation, by its size, of each feature `[n, F]` with any column of `encoded` `[n, k]`."""
    other = torch.from_numpy(_standardized(encoded))
    parts = [features[:, start : start + COLUMNS] for start in range(0, features.shape[1], COLUMNS)]
    found = [(torch.from_numpy(_standardized(part)).T @ other).abs().amax(1).numpy() for part in parts]
    return np.concatenate(found) / len(features)


def _standardized(columns: np.ndarray) -> np.ndarray:
    centered = columns.astype(np.float64) - columns.mean(0, dtype=np.float64)
    deviation = centered.std(0)
    return np.where(deviation > 0, centered / np.where(deviation > 0, deviation, 1), 0)
