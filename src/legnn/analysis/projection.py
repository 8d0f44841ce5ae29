"""Representations in two dimensions: t-SNE, and its picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array
from legnn.analysis.threads import limit_threads
from legnn.errors import InputError

WIDEST = 50
"""Wider representations are first reduced to this many principal components, as t-SNE's authors advise."""

PERPLEXITY = 30.0

ANGLE = 0.8
"""How coarsely distant points are summed up: a third less time than with scikit-learn's 0.5."""


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
