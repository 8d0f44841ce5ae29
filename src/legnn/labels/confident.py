"""Two estimates from probabilities that do not depend on a node's own label.

`estimated_errors` counts the wrong labels by confident learning (Northcutt, Jiang and Chuang, "Confident Learning:
Estimating Uncertainty in Dataset Labels", 2021). `probability_right` ranks them by a noise model fitted by EM.
"""

from __future__ import annotations

import numpy as np
import torch

from legnn.runs.averaging import apply_temperature


def class_thresholds(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`[C]` `t_c`, the mean of `p[i, c]` over the nodes whose given label is `c`; 1 for a class without nodes."""
    size = np.bincount(y, minlength=p.shape[1])
    total = np.bincount(y, weights=p[np.arange(len(y)), y], minlength=p.shape[1])
    return np.where(size > 0, total / np.maximum(size, 1), 1.0)


def confident_joint(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`[C, C]` estimated number of nodes by given label (row) and true class (column); rows add up to the given labels.

    A node counts for the most probable of the classes `c` with `p[i, c] ≥ t_c`, if there is any. The counts of a row
    are then scaled to the number of its labels.
    """
    classes = p.shape[1]
    # rounding must not keep a node from the threshold of a class whose nodes are all alike
    is_confident = p >= class_thresholds(p, y) - 1e-9
    counted = is_confident.any(1)
    believed = np.where(is_confident, p, -1.0).argmax(1)
    joint = np.zeros((classes, classes))
    np.add.at(joint, (y[counted], believed[counted]), 1.0)
    size = np.bincount(y, minlength=classes).astype(float)
    seen = joint.sum(1)
    # a class of which no node is confident is taken to be right
    joint[seen == 0] = np.diag(np.maximum(size, 1.0))[seen == 0]
    return joint * (size / joint.sum(1))[:, None]


def estimated_errors(p: np.ndarray, y: np.ndarray) -> float:
    """Returns the estimated number of given labels that are wrong: what the confident joint has off its diagonal."""
    joint = confident_joint(p, y)
    return float(joint.sum() - np.trace(joint))


PRIOR_LABELS, PRIOR_RIGHT, ROUNDS = 20.0, 0.95, 30
"""The prior of a row of the noise counts as so many labels, of which this share is right; rounds of estimation."""
TEMPERATURES = 2.0 ** np.arange(-3.0, 3.01, 0.25)


def probability_right(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`[n]` the probability that the given label is the true class, where classes are mistaken for each other unevenly.

    With the noise `T[c, d]`, the share of nodes of class `c` whose label is `d`, and `r[i, c] ∝ p[i, c] T[c, y_i]`, it
    is `r[i, y_i]`. Where no pair of classes stands out, the order is that of `p[i, y_i]`. `p` should be calibrated, as
    `calibrate` does.
    """
    responsibility = _posterior(p, y, noise_matrix(p, y))
    return np.asarray(responsibility[np.arange(len(y)), y])


def calibrate(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns `p` `[n, C]` tempered so that the given labels are most likely, a few of which may be wrong.

    The likelihood of a label is `PRIOR_RIGHT p[i, y_i] + (1 − PRIOR_RIGHT) / C`: one that is surely wrong does not
    count for more than that. Cross-fitted models are too unsure with few labels and too sure with many.
    """
    rows, probabilities = np.arange(len(y)), torch.from_numpy(p)

    def likelihood(temperature: float) -> float:
        p_label = apply_temperature(probabilities, temperature).numpy()[rows, y]
        return float(np.log(PRIOR_RIGHT * p_label + (1 - PRIOR_RIGHT) / p.shape[1]).sum())

    return np.asarray(apply_temperature(probabilities, max(TEMPERATURES.tolist(), key=likelihood)).numpy())


def noise_matrix(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`[C, C]` the estimated share of nodes of each true class (row) that have each given label (column).

    By expectation–maximization, with a prior that few labels are wrong.
    """
    classes = p.shape[1]
    noise = np.full((classes, classes), (1 - PRIOR_RIGHT) / max(classes - 1, 1))
    np.fill_diagonal(noise, PRIOR_RIGHT)
    prior = PRIOR_LABELS * noise
    of_label = np.eye(classes)[y]
    for _ in range(ROUNDS):
        expected = prior + _posterior(p, y, noise).T @ of_label
        noise = expected / expected.sum(1, keepdims=True)
    return np.asarray(noise)


def _posterior(p: np.ndarray, y: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """`[n, C]` `r[i, c] ∝ p[i, c] T[c, y_i]`, the probability of each true class beside the given label."""
    joint = p * noise[:, y].T
    return np.asarray(joint / joint.sum(1, keepdims=True))
