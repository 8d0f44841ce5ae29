"""Accuracy by properties of nodes: confidence, degree, homophily, distance to the nearest shown label."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from legnn.data import GraphData
from legnn.report.payload import Band

FARTHEST = 6
"""Longer distances are one band."""


def by_confidence(confidence: np.ndarray, correct: np.ndarray, low: float = 0.0, bins: int = 10) -> list[Band]:
    """Returns bins of equal width over `[low, 1]` of the confidence `[n]`; a bin does not contain its lower bound."""
    edges = np.linspace(low, 1, bins + 1)
    digits = 1 if low == 0 else 2
    names = [f"{begin:.{digits}f} to {end:.{digits}f}" for begin, end in pairwise(edges)]
    # rounding must not move a confidence of 0.9 to the bin above
    band = np.ceil((confidence - low) / (1 - low) * bins - 1e-9).astype(np.int64) - 1
    return _bands(np.clip(band, 0 if low == 0 else -1, bins - 1), names, confidence, correct)


def by_degree(degree: np.ndarray, confidence: np.ndarray, correct: np.ndarray) -> list[Band]:
    """Returns 0, 1, 2, 3 to 4, 5 to 8 and so on: each band as wide as all before it."""
    band = np.where(degree > 1, np.ceil(np.log2(np.maximum(degree, 1))) + 1, degree).astype(np.int64)
    last = int(band.max(initial=0))
    names = ["0", "1", "2", *(f"{2 ** (k - 2) + 1} to {2 ** (k - 1)}" for k in range(3, last + 1))][: last + 1]
    return _bands(band, names, confidence, correct)


def by_homophily(homophily: np.ndarray, confidence: np.ndarray, correct: np.ndarray) -> list[Band]:
    """Returns quarters of the fraction of neighbors that share the node's class; NaN has no neighbor of known class."""
    names = ["no neighbor of known class", "0 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %"]
    band = np.where(np.isnan(homophily), 0, 1 + np.clip(np.ceil(np.nan_to_num(homophily) * 4) - 1, 0, 3))
    return _bands(band.astype(np.int64), names, confidence, correct)


def by_distance(distance: np.ndarray, confidence: np.ndarray, correct: np.ndarray) -> list[Band]:
    """Returns hops to the nearest node that shows its label; -1 where no path leads to one."""
    names = ["1 hop", *(f"{k} hops" for k in range(2, FARTHEST)), f"{FARTHEST} hops or more", "no path"]
    band = np.where(distance < 0, len(names) - 1, np.clip(distance, 1, FARTHEST) - 1)
    return _bands(band, names, confidence, correct)


def neighbor_homophily(graph: GraphData) -> np.ndarray:
    """`[M]` the fraction of a node's neighbors of known class that share its class; NaN without any."""
    source, target = graph.adjacency.edge_index.numpy()
    y = graph.y.numpy()
    known = (source != target) & (y[source] >= 0) & (y[target] >= 0)
    source, target = source[known], target[known]
    count = np.bincount(target, minlength=len(y))
    alike = np.bincount(target, y[source] == y[target], minlength=len(y))
    return np.divide(alike, count, out=np.full(len(y), np.nan), where=count > 0)


def degrees(graph: GraphData) -> np.ndarray:
    """`[M]` how many other nodes a node receives from."""
    source, target = graph.adjacency.edge_index.numpy()
    return np.bincount(target[source != target], minlength=graph.num_nodes)


def distance_to_shown(graph: GraphData) -> np.ndarray:
    """`[M]` hops from a node that shows no label to the nearest one that does at inference; -1 without a path."""
    source, target = graph.adjacency.edge_index.numpy()
    other = source != target
    source, target = source[other], target[other]
    distance = np.full(graph.num_nodes, -1)
    reached = graph.train_mask.numpy()
    hops = 0
    while reached.any():
        hops += 1
        receives = np.zeros(graph.num_nodes, dtype=bool)
        receives[target[reached[source]]] = True
        reached = receives & (distance < 0)
        distance[reached] = hops
    return distance


def _bands(band: np.ndarray, names: Sequence[str], confidence: np.ndarray, correct: np.ndarray) -> list[Band]:
    result = []
    for k, name in enumerate(names):
        inside = band == k
        nodes = int(inside.sum())
        means = [float(values[inside].mean()) if nodes else float("nan") for values in (correct, confidence)]
        result.append(Band(name=name, nodes=nodes, accuracy=means[0], confidence=means[1]))
    return result
