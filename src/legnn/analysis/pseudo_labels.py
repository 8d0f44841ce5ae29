"""How right pseudo labels are: by their probability, and over the epochs of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, check_rows
from legnn.errors import InputError

BANDS = tuple(round(0.90 + 0.01 * k, 2) for k in range(11))
"""The paper's: `(0.90, 0.91]` to `(0.99, 1.00]`."""


def accuracy_by_band(
    confidence: ArrayLike | Tensor, correct: ArrayLike | Tensor, edges: ArrayLike = BANDS
) -> pd.DataFrame:
    """Returns `low`, `high`, `nodes` and `accuracy` of each band `(low, high]` of probabilities; NaN without nodes.

    Args:
        confidence: `[n]` the probability of each node's predicted class.
        correct: `[n]` whether this class is the node's own.
        edges: ascending bounds of the bands.
    """
    p, right = as_array(confidence), as_array(correct).astype(np.float64)
    check_rows(confidence=p, correct=right)
    bounds = np.asarray(edges, dtype=np.float64)
    if bounds.ndim != 1 or len(bounds) < 2 or not (np.diff(bounds) > 0).all():
        raise InputError(f"edges of bands must be two or more ascending numbers, got {bounds.tolist()}")
    band = pd.cut(p.astype(np.float64), bounds.tolist(), labels=False)
    bands = pd.Series(right).groupby(band).agg(nodes="size", accuracy="mean").reindex(range(len(bounds) - 1))
    bands["nodes"] = bands["nodes"].fillna(0).astype(int)
    return pd.DataFrame({"low": bounds[:-1], "high": bounds[1:]}).join(bands)
