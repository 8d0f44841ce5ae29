"""One probability of each class from all that is known of a node but its label: the model, features, neighbors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legnn.labels.neighbor_labels import NeighborLabels

LEAST = 1e-6
"""Smaller probabilities count as this: no model is surer of a class than that."""


@dataclass(frozen=True)
class Weights:
    """The weight of each part in the logarithm; `benchmarks.label_noise choose` finds them on graphs with planted
    errors."""

    model: float = 1.0
    features: float = 0.75
    neighbors: float = 0.0


def combine_evidence(
    model: np.ndarray, features: np.ndarray, neighbors: NeighborLabels, weights: Weights | None = None
) -> np.ndarray:
    """`[n, C]` `q ∝ exp(w_m log p_model + w_f log p_features + w_n L / √d)`.

    Args:
        model: `[n, C]` cross-fitted probabilities of the run's own kind of model.
        features: `[n, C]` those of a perceptron, which reads no neighbors and errs elsewhere.
        neighbors: the likelihood `L` of the labels of a node's neighbors. They are alike for reasons other than the
            node's class, and `d` of them count as `√d` that are independent.
        weights: those that were chosen, if None.
    """
    w = weights or Weights()
    degree = np.maximum(neighbors.counts.sum(1, keepdims=True), 1.0)
    z = w.model * _log(model) + w.features * _log(features) + w.neighbors * neighbors.log_likelihood / np.sqrt(degree)
    q = np.exp(z - z.max(1, keepdims=True))
    return np.asarray(q / q.sum(1, keepdims=True))


def _log(p: np.ndarray) -> np.ndarray:
    return np.log(np.clip(p, LEAST, 1.0))
