"""How similar the learned representations of labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, check_rows


def cosine_similarity(labels: ArrayLike | Tensor) -> np.ndarray:
    """`[C, C]` the cosine of the angle between every two rows of `labels` `[C, D]`; 0 for a row of zeros."""
    rows = as_array(labels).astype(np.float64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.clip(unit @ unit.T, -1, 1)


def most_similar_pairs(similarity: np.ndarray, class_names: Sequence[Any], count: int = 10) -> pd.DataFrame:
    """Returns the `count` most similar pairs of different classes: `first`, `second`, `similarity`, descending."""
    check_rows(similarity=similarity, class_names=np.asarray(class_names, dtype=object))
    first, second = np.triu_indices(len(similarity), k=1)
    order = np.argsort(-similarity[first, second], kind="stable")[:count]
    return pd.DataFrame(
        {
            "first": [class_names[i] for i in first[order]],
            "second": [class_names[i] for i in second[order]],
            "similarity": similarity[first, second][order],
        }
    )


def order_by_similarity(similarity: np.ndarray) -> np.ndarray:
    """Returns the classes `[C]` in the order of the leaves of their hierarchical clustering (average linkage)."""
    # scipy's clustering is needed here alone
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(similarity) < 3:
        return np.arange(len(similarity))
    distance = 1 - (similarity + similarity.T) / 2
    np.fill_diagonal(distance, 0)
    return leaves_list(linkage(squareform(distance, checks=False), "average"))
