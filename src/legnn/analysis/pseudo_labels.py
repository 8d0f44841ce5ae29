"""How right pseudo labels are: by their probability, and over the epochs of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, band_of, check_rows

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
    band = band_of(p, bounds)
    inside = (band >= 0) & (band < len(bounds) - 1)
    nodes = np.bincount(band[inside], minlength=len(bounds) - 1)
    hits = np.bincount(band[inside], right[inside], minlength=len(bounds) - 1)
    accuracy = np.divide(hits, nodes, out=np.full(len(nodes), np.nan), where=nodes > 0)
    return pd.DataFrame({"low": bounds[:-1], "high": bounds[1:], "nodes": nodes, "accuracy": accuracy})
