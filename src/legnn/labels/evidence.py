"""Probabilities of two kinds of models, of the graph and of features alone, combined into one."""

from __future__ import annotations

import numpy as np

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
    return normalize(_log(model) + weight * _log(features))


def normalize(log_q: np.ndarray) -> np.ndarray:
    """`[n, C]` probabilities from logarithms that are known up to a constant of each row."""
    q = np.exp(log_q - log_q.max(1, keepdims=True))
    return np.asarray(q / q.sum(1, keepdims=True))


def _log(p: np.ndarray) -> np.ndarray:
    return np.log(np.clip(p, LEAST, 1.0))
