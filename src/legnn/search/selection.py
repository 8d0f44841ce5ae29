"""Which members an ensemble has, chosen on validation nodes alone.

`p` `[K, n, C]` are the probabilities of `K` candidates for `n` validation nodes, in the order of the portfolio, and `y`
`[n]` the classes of these nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from legnn.errors import InputError

ROUNDS = 25
FOLDS = 8
SMALLEST = 1e-4
"""Probabilities below count as this large in log losses, which a single certain error would decide otherwise."""
TEMPERATURES = (0.1, 10.0)
CHUNK = 1 << 20
"""Numbers that are added at once: more would not stay in the cache."""


def greedy_selection(p: ArrayLike, y: ArrayLike, *, rounds: int = ROUNDS) -> np.ndarray:
    """Returns weights `[K]`, which sum to 1: selection with replacement (Caruana et al., 2004).

    In each round, the candidate joins whose probabilities, added to those of the members so far, have the best
    accuracy, among equals the least log loss, among equals the first. The round with the best accuracy counts, of equal
    ones the one with the least log loss.
    """
    return _greedy(_true_class_first(p, y), rounds)


def guarded_selection(p: ArrayLike, y: ArrayLike, *, rounds: int = ROUNDS, folds: int = FOLDS) -> np.ndarray:
    """Returns weights `[K]` as `greedy_selection` does, guarded against candidates that fit a small validation set by
    chance.

    The nodes are shared out over `folds`; members are selected on all nodes outside a fold, once for each, and the
    weights are averaged: what only some nodes speak for has little weight. `benchmarks.leave_one_out` compares it with
    the selection without guard. To fall back on the first candidate unless the gain over it, on nodes that did not
    decide, exceeds its standard error was tried as well: it gave up 26 of 51 ensembles, and mean test accuracy fell by
    0.4 to 1.0 points.
    """
    by_class = _true_class_first(p, y)
    n = by_class.shape[2]
    folds = min(folds, n)
    if folds < 2:
        return _only(0, len(by_class))
    fold_of = np.random.default_rng(0).permutation(np.arange(n) % folds)
    return np.mean([_greedy(by_class[:, :, fold_of != fold], rounds) for fold in range(folds)], axis=0)


def best_single(p: ArrayLike, y: ArrayLike) -> int:
    """Returns the first candidate that the best one on validation beats by no more than a standard error.

    The gain of the best over another is a mean over nodes, of which those that both get right or both get wrong add
    nothing to its standard error.
    """
    right = _is_right(_true_class_first(p, y))
    best = int(right.mean(1).argmax()) if right.shape[1] else 0
    return next(k for k in range(len(right)) if k == best or not _exceeds_error(right[best] - right[k]))


def fit_temperature(p: ArrayLike, y: ArrayLike) -> float:
    """Returns the `T` within `TEMPERATURES` for which `p^(1/T)`, `p` `[n, C]`, rows of sum 1, has the least log loss on
    `y`; 1 without nodes."""
    probabilities, classes = np.asarray(p, dtype=np.float64), np.asarray(y)
    if not len(classes):
        return 1.0
    logits = np.log(np.maximum(probabilities, SMALLEST))

    def loss(inverse: float) -> float:
        scaled = inverse * logits
        top = scaled.max(1, keepdims=True)
        total = np.log(np.exp(scaled - top).sum(1)) + top[:, 0]
        return float((total - scaled[np.arange(len(classes)), classes]).mean())

    # convex in 1 / T: golden section finds the minimum
    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    ratio = (np.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    of_left, of_right = loss(left), loss(right)
    while high - low > 1e-4 * low:
        if of_left <= of_right:
            high, right, of_right = right, left, of_left
            left = high - ratio * (high - low)
            of_left = loss(left)
        else:
            low, left, of_left = left, right, of_right
            right = low + ratio * (high - low)
            of_right = loss(right)
    return 2 / (low + high)


def _greedy(by_class: np.ndarray, rounds: int) -> np.ndarray:
    counts, total = np.zeros(len(by_class)), np.zeros(by_class.shape[1:], dtype=by_class.dtype)
    best, best_counts = (-1, 0.0), _only(0, len(by_class))
    for members in range(1, rounds + 1):
        right = _count_right(by_class, total)
        equal = np.flatnonzero(right == right.max())
        means = (by_class[equal, 0] + total[0]) / members
        # rounded: the same members in another order are equal
        losses = -np.log(np.maximum(means, SMALLEST)).mean(1).round(6)
        # of equal ones, argmin returns the first
        least = int(losses.argmin())
        chosen = equal[least]
        counts[chosen] += 1
        total += by_class[chosen]
        score = int(right[chosen]), -float(losses[least])
        if score > best:
            best, best_counts = score, counts / members
    return best_counts


def _count_right(by_class: np.ndarray, total: np.ndarray) -> np.ndarray:
    """`[K]` the nodes that are right after each candidate joined."""
    step = max(CHUNK // max(total.size, 1), 1)
    chunks = [_is_right(by_class[begin : begin + step] + total) for begin in range(0, len(by_class), step)]
    return np.concatenate([chunk.sum(1) for chunk in chunks])


def _true_class_first(p: ArrayLike, y: ArrayLike) -> np.ndarray:
    """`[K, C, n]`: `p` with each node's own class in place 0; sums over candidates keep this form."""
    probabilities, classes = np.asarray(p, dtype=np.float32), np.asarray(y)
    if probabilities.ndim != 3 or probabilities.shape[1] != len(classes) or not probabilities.shape[0]:
        raise InputError(
            "selection takes probabilities [K, n, C] of at least one candidate and n classes, "
            f"got {list(probabilities.shape)} and {len(classes)}"
        )
    nodes = np.arange(len(classes))
    by_class = np.ascontiguousarray(probabilities.transpose(0, 2, 1))
    by_class[:, classes, nodes] = probabilities[:, :, 0]
    by_class[:, 0] = probabilities[:, nodes, classes]
    return by_class


def _is_right(by_class: np.ndarray) -> np.ndarray:
    """`[..., n]` 1 where the own class has more than any other: a tie is an error, or nodes of which nothing is known
    would count as right."""
    return (by_class[..., 0, :] > by_class[..., 1:, :].max(-2, initial=-1.0)).astype(np.float64)


def _exceeds_error(gain: np.ndarray) -> bool:
    """Whether the mean of `gain` `[n]` is more than its standard error."""
    n = len(gain)
    return n > 1 and float(gain.mean()) > float(gain.std(ddof=1)) / np.sqrt(n)


def _only(chosen: int, number: int) -> np.ndarray:
    weights = np.zeros(number)
    weights[chosen] = 1.0
    return weights
