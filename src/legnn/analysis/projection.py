"""Representations in two dimensions: t-SNE, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, check_rows
from legnn.analysis.pictures import CLASS_COLORS, new_figure, save_picture
from legnn.analysis.threads import limit_threads
from legnn.errors import InputError

WIDEST = 50
"""Wider representations are first reduced to this many principal components, as t-SNE's authors advise."""

PERPLEXITY = 30.0

ANGLE = 0.8
"""How coarsely distant points are summed up: a third less time than with scikit-learn's 0.5."""

MARKERS = "os^Dv"


def tsne(z: ArrayLike | Tensor, seed: int = 0, *, iterations: int = 1000) -> np.ndarray:
    """Returns `[n, 2]`, the t-SNE of `z` `[n, D]`; four nodes or more, and zeros where all nodes are equal."""
    # scikit-learn takes a second to import
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rows = as_array(z).astype(np.float32)
    if len(rows) < 4:
        raise InputError(f"t-SNE needs at least 4 nodes, got {len(rows)}")
    if not np.ptp(rows, axis=0).any():
        return np.zeros((len(rows), 2), dtype=np.float32)
    if rows.shape[1] > WIDEST:
        rows = PCA(min(WIDEST, len(rows)), random_state=seed).fit_transform(rows)
    # a node has no more neighbors than there are other nodes
    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    init = "pca" if rows.shape[1] > 1 else "random"
    model = TSNE(2, perplexity=perplexity, angle=ANGLE, init=init, random_state=seed)
    # scikit-learn 1.4 has another name for it
    name = "max_iter" if "max_iter" in model.get_params() else "n_iter"
    with limit_threads(len(rows)):
        return model.set_params(**{name: iterations}).fit_transform(rows)


def draw_projection(
    points: ArrayLike | Tensor, y: ArrayLike | Tensor, class_names: Sequence[Any], path: str | Path, title: str = ""
) -> None:
    """Draws `points` `[n, 2]`, each class of `y` `[n]` in a color and a marker of its own, largest classes first."""
    places, classes = as_array(points), as_array(y)
    check_rows(points=places, y=classes)
    figure, (axis,) = new_figure(width=6.4, height=4.8)
    names, sizes = np.unique(classes, return_counts=True)
    for k, c in enumerate(names[np.argsort(-sizes, kind="stable")].tolist()):
        own = places[classes == c]
        look: dict[str, Any] = {"color": CLASS_COLORS[k % len(CLASS_COLORS)], "marker": MARKERS[k % len(MARKERS)]}
        axis.scatter(own[:, 0], own[:, 1], s=7, linewidths=0, label=str(class_names[c]), **look)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.set_title(title, fontsize=10)
    if len(names) <= 2 * len(CLASS_COLORS):
        axis.legend(frameon=False, fontsize=8, markerscale=2, loc="center left", bbox_to_anchor=(1, 0.5))
    save_picture(figure, path)
