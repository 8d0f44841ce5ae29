"""What the labels of neighbors say of a node's class, on graphs where neighbors are alike and where they are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from legnn.data import GraphData
from legnn.labels.cross_fitted import fold_nodes

SMOOTHING = 1.0
"""Edges that every row of the compatibility has beside those that were counted, spread as the labels are."""


class NeighborLabels(NamedTuple):
    """The labels around each node."""

    counts: np.ndarray
    """`[M, C]` the (weighted) number of neighbors with each given label; a node is no neighbor of its own."""
    log_likelihood: np.ndarray
    """`[M, C]` of those labels, for each class that the node might have."""


def neighbor_labels(graph: GraphData, folds: int) -> NeighborLabels:
    """Returns the labels around each node, and their likelihood `Σ_j log H[c, y_j]` for each class `c` of it.

    `H[c, d]` is the share of neighbors of class `d` around training nodes of class `c`. That of a training node is
    counted without the labels of its fold, and that of any other node among training nodes alone: neither number
    depends on the node's own label.
    """
    y, train = graph.y.numpy(), graph.train_mask.numpy()
    adjacency = _without_self_loops(graph)
    labels = _one_hot(y, y >= 0, graph.num_classes)
    counts = (adjacency @ labels).toarray()
    fold = np.where(train, fold_nodes(graph.node_id, folds, 0), -1)
    log_likelihood = np.zeros_like(counts)
    for k in np.unique(fold):
        shown = _one_hot(y, train & (fold != k), graph.num_classes)
        rows = fold == k
        log_likelihood[rows] = counts[rows] @ np.log(_compatibility(adjacency, shown)).T
    return NeighborLabels(counts, log_likelihood)


def _compatibility(adjacency: csr_array, shown: csr_array) -> np.ndarray:
    """`H` `[C, C]`, rows of sum 1, from the edges between nodes that show a label."""
    edges = (shown.T @ (adjacency @ shown)).toarray()
    # a class is not ruled out because nobody was seen beside it
    size = np.asarray(shown.sum(0)).ravel() + 1.0
    edges = edges + SMOOTHING * size / size.sum()
    return np.asarray(edges / edges.sum(1, keepdims=True))


def _without_self_loops(graph: GraphData) -> csr_array:
    own = graph.adjacency
    row, col = own.row.numpy(), own.col.numpy()
    weight = np.ones(len(col)) if own.weight is None else own.weight.double().numpy()
    kept = row != col
    return csr_array((weight[kept], (row[kept], col[kept])), shape=(graph.num_nodes, graph.num_nodes))


def _one_hot(y: np.ndarray, nodes: np.ndarray, classes: int) -> csr_array:
    place = np.flatnonzero(nodes)
    return csr_array((np.ones(len(place)), (place, y[place])), shape=(len(y), classes))
