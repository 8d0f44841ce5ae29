"""Evidence for a label: probabilities of two kinds of models combined into one, and the labels of neighbors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from legnn.data import GraphData
from legnn.labels.coverage import to_scipy

LEAST = 1e-6
"""Smaller probabilities are raised to this: no model is surer of a class."""
FEATURES_WEIGHT = 0.75
"""The weight of the perceptron; `benchmarks.label_noise choose` finds it on graphs with planted errors."""


def combine_evidence(model: np.ndarray, features: np.ndarray, weight: float = FEATURES_WEIGHT) -> np.ndarray:
    """`[n, C]` `q ∝ p_model · p_features^weight`.

    Args:
        model: `[n, C]` cross-fitted probabilities of the run's own kind of model.
        features: `[n, C]` those of a perceptron, which reads no neighbors and makes other mistakes.
    """
    log_q = np.log(np.clip(model, LEAST, 1.0)) + weight * np.log(np.clip(features, LEAST, 1.0))
    return np.asarray(softmax(log_q, axis=1))


def count_neighbor_labels(graph: GraphData) -> np.ndarray:
    """`[M, C]` the (weighted) number of neighbors with each given label; a node is no neighbor of itself."""
    A = to_scipy(graph.adjacency)
    edges = A - sp.diags(A.diagonal())
    labels = np.eye(graph.num_classes + 1)[graph.y.numpy()][:, :-1]
    return np.asarray(edges @ labels)
