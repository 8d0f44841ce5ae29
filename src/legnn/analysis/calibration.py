"""Whether a model is right as often as its probabilities say."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, band_of, check_rows
from legnn.errors import InputError

BINS = 15


def reliability(confidence: ArrayLike | Tensor, correct: ArrayLike | Tensor, bins: int = BINS) -> pd.DataFrame:
    """Returns `low`, `high`, `nodes`, mean `confidence` and `accuracy` of bins of equal width over `[0, 1]`.

    Args:
        confidence: `[n]` the probability of each node's predicted class.
        correct: `[n]` whether this class is the node's own.
    """
    p, right = as_array(confidence).astype(np.float64), as_array(correct).astype(np.float64)
    check_rows(confidence=p, correct=right)
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}")
    edges = np.linspace(0, 1, bins + 1)
    # a bin is (low, high], and 0 is in the first
    band = np.clip(band_of(p, edges), 0, bins - 1)
    nodes = np.bincount(band, minlength=bins)
    means = [np.bincount(band, values, minlength=bins) for values in (p, right)]
    means = [np.divide(total, nodes, out=np.full(bins, np.nan), where=nodes > 0) for total in means]
    columns = {"low": edges[:-1], "high": edges[1:], "nodes": nodes, "confidence": means[0], "accuracy": means[1]}
    return pd.DataFrame(columns)
