"""A rule that tells the class from one column: learned on half of the nodes and scored on the other half."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEAST_NODES = 20
"""Fewer nodes of a class, or of a split, do not tell a leak from chance."""


class RuleScore(NamedTuple):
    """Scores of a rule on nodes that it was not learned on."""

    skill: float
    """`(accuracy - m) / (1 - m)` with the share `m` of the largest class: 0 says nothing of the classes, 1 all."""
    class_f1: float
    """F1 of the class it tells best, of those with `LEAST_NODES` nodes."""
    best_class: int


def score_rule(values: np.ndarray, y: np.ndarray, num_classes: int) -> RuleScore:
    """Returns how well the classes `y` `[n]` follow from the `values` `[n]` of a column.

    The rule says the most frequent class of the nodes with the same value; if there are none, with the nearest one.
    """
    if np.count_nonzero(values != np.median(values)) < LEAST_NODES // 2:
        # nearly constant, as the columns of most words are: no class has so few nodes
        return RuleScore(0.0, 0.0, 0)
    half = np.random.default_rng(0).permutation(len(y)) % 2 == 0
    predicted = np.empty_like(y)
    for fitted in (half, ~half):
        known, number = np.unique(values[fitted], return_inverse=True)
        counts = np.bincount(number * num_classes + y[fitted], minlength=len(known) * num_classes)
        best = counts.reshape(-1, num_classes).argmax(1)
        predicted[~fitted] = best[_nearest(known, values[~fitted])]
    return score_classes(predicted, y, num_classes)


def _nearest(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The positions in `known`, which ascends, of what is nearest to each of `values`."""
    above = np.searchsorted(known, values).clip(1, max(len(known) - 1, 1)).clip(max=len(known) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(values - known[below] < known[above] - values, below, above)


def score_classes(predicted: np.ndarray, y: np.ndarray, num_classes: int) -> RuleScore:
    """Returns how well `predicted` `[n]` tells the classes `y` `[n]`."""
    of_class = np.bincount(y, minlength=num_classes)
    hits = np.bincount(y[predicted == y], minlength=num_classes)
    f1 = 2 * hits / np.maximum(of_class + np.bincount(predicted, minlength=num_classes), 1)
    # of a class of most nodes, any guess has a high F1
    f1[(of_class < LEAST_NODES) | (2 * of_class > len(y))] = 0
    most = of_class.max() / len(y)
    skill = (hits.sum() / len(y) - most) / (1 - most) if most < 1 else 0.0
    return RuleScore(float(skill), float(f1.max()), int(f1.argmax()))
