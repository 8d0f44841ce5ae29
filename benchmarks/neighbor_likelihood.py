"""A likelihood of the labels around a node, which was considered as evidence and got the weight 0.

`benchmarks.label_noise choose` prints what it gains and loses: a model that reads these labels says it already.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from legnn.data import GraphData
from legnn.labels.cross_fitted import fold_nodes
from legnn.labels.evidence import normalize
from legnn.labels.neighbor_labels import count_neighbor_labels

SMOOTHING = 1.0
"""Edges that every row of the compatibility has beside those that were counted, spread as the labels are."""


def neighbor_likelihood(graph: GraphData, folds: int) -> np.ndarray:
    """`[M, C]` `Σ_j log H[c, y_j] / √d` over the `d` labeled neighbors `j` of a node, for each class `c` of it.

    `H[c, d]` is the share of neighbors of class `d` around training nodes of class `c`. That of a training node is
    counted without the labels of its fold, and that of any other node among training nodes alone: neither number
    depends on the node's own label. Neighbors are alike for reasons other than the node's class: `d` of them count as
    `√d` that are independent.
    """
    counts = count_neighbor_labels(graph)
    fold = np.where(graph.train_mask.numpy(), fold_nodes(graph.node_id, folds, 0), -1)
    likelihood = np.zeros_like(counts)
    for k in np.unique(fold):
        rows = fold == k
        likelihood[rows] = counts[rows] @ np.log(_compatibility(graph, (fold >= 0) & (fold != k))).T
    return likelihood / np.sqrt(np.maximum(counts.sum(1, keepdims=True), 1.0))


def weigh(q: np.ndarray, likelihood: np.ndarray, weight: float) -> np.ndarray:
    """`[n, C]` `∝ q · exp(weight · likelihood)`."""
    return normalize(np.log(q) + weight * likelihood)


def _compatibility(graph: GraphData, shows: np.ndarray) -> np.ndarray:
    """`H` `[C, C]`, rows of sum 1, from the edges between nodes that show a label."""
    shown = torch.where(torch.from_numpy(shows), graph.y, -1)
    labels = np.eye(graph.num_classes)[shown[shows]]
    edges = labels.T @ count_neighbor_labels(replace(graph, y=shown))[shows]
    # a class is not ruled out because nobody was seen beside it
    size = labels.sum(0) + 1.0
    edges += SMOOTHING * size / size.sum()
    return np.asarray(edges / edges.sum(1, keepdims=True))
