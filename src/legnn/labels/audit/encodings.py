"""Features that are statistics of labels: of neighbors, or of nodes with the same category, test labels among them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy import sparse

from legnn.labels.audit.columns import feature_columns
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
    columns = list(feature_columns(subject))
    features = np.stack([column.values[:tests] for column in columns], 1).astype(np.float32)
    leaks: dict[int, str] = {}
    for words, with_test, without in _encodings(subject, features, columns_of_tables(subject, len(columns))):
        known, hidden = _largest_correlation(features, without), _largest_correlation(features, with_test)
        for k in np.flatnonzero((hidden >= SAME) & (known < SAME)).tolist():
            leaks.setdefault(k, f"{columns[k].name} is {words}, test labels included")
    clean = "none is one that test labels complete"
    return conclude(CHECK, TRIED, len(columns), leaks=list(leaks.values()), clean=clean)


def columns_of_tables(subject: Subject, count: int) -> list[int]:
    """The positions of columns of tables that are several features, behind the features themselves."""
    types = subject.graph.node_types
    width = subject.graph.num_features if types is None else len(types.columns[types.names.index(types.target)])
    return list(range(width, count))


def _encodings(
    subject: Subject, features: np.ndarray, categories: list[int]
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Statistics of labels at the test nodes, `[n, k]` with test labels and without: what they are, and both."""
    graph = subject.graph
    train = graph.train_mask.numpy()
    every, known = (_one_hot(subject, mask) for mask in (subject.y >= 0, train))
    adjacency = graph.adjacency
    ones = np.ones(adjacency.num_edges, dtype=np.float32)
    shape = (graph.num_nodes, graph.num_nodes)
    edges = sparse.csr_matrix((ones, adjacency.col.numpy(), adjacency.rowptr.numpy()), shape=shape)[subject.test]
    # self-loops would show each node its own label, which is looked for among single features
    own = sparse.csr_matrix((np.ones(len(subject.test)), (np.arange(len(subject.test)), subject.test)), edges.shape)
    edges = edges - edges.multiply(own)
    with_test, without = (np.asarray((edges @ labels).todense()) for labels in (every, known))
    yield "a count of the labels of neighbors", with_test, without
    yield "a share of the labels of neighbors", _shares(with_test), _shares(without)
    order = np.arange(graph.num_classes, dtype=np.float32)[:, None]
    yield "a mean of the labels of neighbors", _shares(with_test) @ order, _shares(without) @ order
    nodes = np.concatenate([subject.test, subject.others])
    for k in categories:
        values = np.unique(np.stack([*feature_columns(subject)][k].values), return_inverse=True)[1]
        grouped = sparse.csr_matrix((np.ones(len(nodes)), (values, np.arange(len(nodes)))))
        both = [
            np.asarray((grouped @ labels[nodes]).todense())[values[: len(subject.test)]] for labels in (every, known)
        ]
        yield "a share of the labels of a category", *(_shares(one) for one in both)
        yield "a mean of the labels of a category", *(_shares(one) @ order for one in both)


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
