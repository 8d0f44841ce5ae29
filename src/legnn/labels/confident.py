"""Confident learning: how many given labels are wrong, and which, from probabilities that never saw them.

After Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels" (2021).
"""

from __future__ import annotations

import numpy as np


def class_thresholds(p: np.ndarray, given: np.ndarray) -> np.ndarray:
    """`[C]` `t_c`, the mean of `p[i, c]` over the nodes whose given label is `c`; 1 for a class without nodes."""
    size = np.bincount(given, minlength=p.shape[1])
    total = np.bincount(given, weights=p[np.arange(len(given)), given], minlength=p.shape[1])
    return np.where(size > 0, total / np.maximum(size, 1), 1.0)


def confident_joint(p: np.ndarray, given: np.ndarray) -> np.ndarray:
    """`[C, C]` estimated number of nodes by given label (row) and true class (column); rows add up to the given labels.

    A node counts for the most probable of the classes `c` with `p[i, c] ≥ t_c`, if there is any. The counts of a row
    are then scaled to the number of its labels.
    """
    classes = p.shape[1]
    # rounding must not keep a node from the threshold of a class whose nodes are all alike
    is_confident = p >= class_thresholds(p, given) - 1e-9
    counted = is_confident.any(1)
    believed = np.where(is_confident, p, -1.0).argmax(1)
    joint = np.zeros((classes, classes))
    np.add.at(joint, (given[counted], believed[counted]), 1.0)
    size = np.bincount(given, minlength=classes).astype(float)
    seen = joint.sum(1)
    # a class of which no node is confident is taken to be right
    joint[seen == 0] = np.diag(np.maximum(size, 1.0))[seen == 0]
    return joint * (size / joint.sum(1))[:, None]


def estimated_errors(p: np.ndarray, given: np.ndarray) -> float:
    """Returns the estimated number of given labels that are wrong: what the confident joint has off its diagonal."""
    joint = confident_joint(p, given)
    return float(joint.sum() - np.trace(joint))


def normalized_margin(p: np.ndarray, given: np.ndarray) -> np.ndarray:
    """`[n]` `p[i, y_i] − max_{c ≠ y_i} p[i, c]`, from 1 for a label beyond doubt to −1."""
    rows = np.arange(len(given))
    others = p.copy()
    others[rows, given] = -np.inf
    return p[rows, given] - others.max(1)
