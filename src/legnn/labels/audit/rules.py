"""How well the class follows from one column alone, by a rule learned on half of the nodes and scored on the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEAST_NODES = 20
"""Fewer nodes of a class, or of a split, do not tell a leak from chance."""


NEAREST = 3
"""Nodes with the nearest values that decide where no value is the same; more would blur where classes meet."""


class RuleScore(NamedTuple):
    """What a rule on one column achieves on nodes that it was not learned on."""

    skill: float
    """`(accuracy - m) / (1 - m)` with the share `m` of the largest class: 0 says nothing of the classes, 1 all."""
    class_f1: float
    """F1 of the class it tells best, of those with `LEAST_NODES` nodes."""
    best_class: int


def score_rule(values: np.ndarray, y: np.ndarray, num_classes: int) -> RuleScore:
    """Returns how well the classes `y` `[n]` follow from the `values` `[n]` of a column.

    The rule says the most frequent class of the nodes with the same value, or with the nearest ones if there are none.
    """
    half = np.random.default_rng(0).permutation(len(y)) % 2 == 0
    predicted = np.empty_like(y)
    for fitted in (half, ~half):
        order = np.argsort(values[fitted], kind="stable")
        known = values[fitted][order]
        begin, end = (np.searchsorted(known, values[~fitted], side) for side in ("left", "right"))
        is_new = begin == end
        begin = np.where(is_new, np.maximum(begin - NEAREST // 2, 0), begin)
        end = np.where(is_new, np.minimum(end + NEAREST // 2 + 1, len(known)), end)
        # how many nodes of each class are before each position
        before = np.zeros((len(known) + 1, num_classes), dtype=np.int32)
        before[np.arange(1, len(known) + 1), y[fitted][order]] = 1
        before = before.cumsum(0)
        predicted[~fitted] = (before[end] - before[begin]).argmax(1)
    return score_classes(predicted, y, num_classes)


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
