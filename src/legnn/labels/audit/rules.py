"""How well the class follows from one column alone, by a rule learned on half of the nodes and scored on the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEAST_NODES = 20
"""Fewer nodes of a class, or of a split, do not tell a leak from chance."""


class RuleScore(NamedTuple):
    """What a rule on one column achieves on nodes that it was not learned on."""

    skill: float
    """`(accuracy - m) / (1 - m)` with the share `m` of the largest class: 0 says nothing of the classes, 1 all."""
    class_f1: float
    """F1 of the class it tells best, of those with `LEAST_NODES` nodes."""
    best_class: int


def score_rule(values: np.ndarray, y: np.ndarray, num_classes: int) -> RuleScore:
    """Returns how well the classes `y` `[n]` follow from the `values` `[n]` of a column.

    The rule is the most frequent class of each value, or of each range of values where there are many.
    """
    code = to_codes(values, most=max(32, 4 * num_classes))
    half = np.random.default_rng(0).permutation(len(y)) % 2 == 0
    predicted = np.empty_like(y)
    for fitted in (half, ~half):
        table = np.bincount(code[fitted] * num_classes + y[fitted], minlength=(code.max() + 1) * num_classes)
        table = table.reshape(-1, num_classes)
        best = np.where(table.any(1), table.argmax(1), np.bincount(y[fitted]).argmax())
        predicted[~fitted] = best[code[~fitted]]
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


def to_codes(values: np.ndarray, most: int) -> np.ndarray:
    """Returns the number of the value of each node; of its range, with about as many nodes each, if more than `most`."""
    distinct, code = np.unique(values, return_inverse=True)
    if len(distinct) <= most:
        return code
    edges = np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[1:-1], method="nearest"))
    return np.searchsorted(edges, values, side="right")
