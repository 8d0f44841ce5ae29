"""How similar the learned representations of labels are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, check_rows
from legnn.analysis.pictures import new_figure, save_picture

MOST_NAMES = 60
"""With more classes, their names would not be readable beside the heat map."""


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


def draw_label_similarity(similarity: np.ndarray, class_names: Sequence[Any], path: str | Path) -> None:
    """Draws the similarities `[C, C]` as a heat map, similar classes side by side."""
    order = order_by_similarity(similarity)
    side = min(max(3.5, 0.22 * len(order)), 12.0)
    figure, (axis,) = new_figure(width=side + 1.5, height=side)
    # its two hues and white in the middle stay apart for color-blind readers
    image = axis.imshow(similarity[np.ix_(order, order)], cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    if len(order) <= MOST_NAMES:
        names = [str(class_names[c]) for c in order]
        axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axis.set_yticks(range(len(names)), names, fontsize=7)
    else:
        axis.set(xticks=[], yticks=[])
    figure.colorbar(image, ax=axis, label="cosine similarity of labels")
    save_picture(figure, path)
