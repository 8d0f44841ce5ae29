"""How well k-means on representations finds the classes: the paper's node clustering."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, check_rows
from legnn.analysis.threads import limit_threads


class Clustering(NamedTuple):
    """Agreement of clusters with classes."""

    nmi: float
    """Normalized mutual information."""
    ari: float
    """Adjusted Rand index."""


def choose_nodes(
    y: ArrayLike | Tensor,
    eligible: ArrayLike | Tensor | None = None,
    classes: int = 10,
    per_class: int = 500,
    seed: int = 0,
) -> np.ndarray:
    """Returns the positions, ascending, of `per_class` random nodes of each of the `classes` largest classes.

    A class with fewer nodes gives all of them, and fewer classes give what there is. `eligible` `[n]` (bool) says which
    nodes count and may be drawn, None for all; nodes of unknown class, -1, never do.
    """
    known = as_array(y)
    mask = known >= 0
    if eligible is not None:
        allowed = as_array(eligible).astype(bool)
        check_rows(y=known, eligible=allowed)
        mask &= allowed
    names, sizes = np.unique(known[mask], return_counts=True)
    # stable: of classes of the same size, the one with the smaller number
    largest = names[np.argsort(-sizes, kind="stable")[:classes]]
    generator = np.random.default_rng(seed)
    drawn = []
    for c in largest.tolist():
        nodes = np.flatnonzero(mask & (known == c))
        drawn.append(generator.choice(nodes, min(per_class, len(nodes)), replace=False))
    return np.sort(np.concatenate(drawn)) if drawn else np.zeros(0, dtype=np.int64)


def cluster(z: ArrayLike | Tensor, y: ArrayLike | Tensor, seed: int = 0) -> Clustering:
    """Clusters `z` `[n, D]` by k-means into as many clusters as `y` `[n]` has classes, and compares the two.

    The best of ten starts is taken. Both numbers are NaN for fewer than two classes, where they say nothing.
    """
    # scikit-learn takes a second to import
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    rows, classes = as_array(z), as_array(y)
    check_rows(z=rows, y=classes)
    k = len(np.unique(classes))
    if k < 2:
        return Clustering(float("nan"), float("nan"))
    with warnings.catch_warnings(), limit_threads(len(rows)):
        # representations that collapsed to fewer points than classes are a result, not a mistake of the caller
        warnings.simplefilter("ignore", ConvergenceWarning)
        clusters = KMeans(k, n_init=10, random_state=seed).fit_predict(rows)
    nmi, ari = normalized_mutual_info_score(classes, clusters), adjusted_rand_score(classes, clusters)
    return Clustering(float(nmi), float(ari))
