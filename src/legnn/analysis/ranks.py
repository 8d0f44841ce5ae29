"""Methods compared over several data sets by their ranks (Demšar, 2006): mean ranks, and which of them differ."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from legnn.errors import InputError


def mean_ranks(scores: ArrayLike) -> np.ndarray:
    """`[k]` the mean rank of each of `k` methods over the `N` rows of `scores` `[N, k]`.

    The largest score of a row has rank 1; equal scores share the mean of their ranks.
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(-_checked(scores), axis=1).mean(0))


def friedman_p_value(scores: ArrayLike) -> float:
    """The p value of Friedman's test that all methods rank alike; NaN for fewer than 3 methods or 2 data sets.

    `scores` is `[N, k]`; the test also says nothing where every method has the same score on every data set.
    """
    from scipy.stats import friedmanchisquare

    values = _checked(scores)
    if values.shape[0] < 2 or values.shape[1] < 3 or (values == values[:, :1]).all():
        return math.nan
    return float(friedmanchisquare(*values.T).pvalue)


def critical_difference(methods: int, data_sets: int, level: float = 0.05) -> float:
    """Nemenyi's `CD = q / √2 · sqrt(k (k + 1) / (6 N))` of `k` methods on `N` data sets.

    `q` is the `1 - level` quantile of the studentized range of `k` groups with infinitely many degrees of freedom. Mean
    ranks that are farther apart differ.
    """
    from scipy.stats import studentized_range

    if methods < 2 or data_sets < 1:
        raise InputError(
            f"ranks are compared among at least 2 methods on at least 1 data set, got {methods} and {data_sets}"
        )
    q = float(studentized_range.ppf(1 - level, methods, math.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * data_sets))


def _checked(scores: ArrayLike) -> np.ndarray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InputError("scores to rank must be a matrix, data sets × methods, in which none is missing")
    return values
