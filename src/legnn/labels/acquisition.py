"""Nodes to label next: the model is unsure of them, they are like many others, and their labels reach many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from legnn.data import GraphData
from legnn.data.splits import NO_SPLIT
from legnn.datasets import Source
from legnn.errors import InputError
from legnn.labels.coverage import Coverage, Picks, Weights, to_scipy
from legnn.runs import Predictor

SMOOTHING = 2
"""Steps of averaging over neighbors, after which features are compared: as far as a model of two layers sees."""
CHANNELS = 128
"""Number of principal components of wider features: the others are mostly noise."""


def next_labels(run: Predictor, n: int = 50, *, data: Source | None = None, device: str = "auto") -> pd.DataFrame:
    """Returns the `n` nodes without a label that are most worth labeling, best first.

    Columns are `rank`, `id`, `score`, `prediction`, `confidence`, `uncertainty` (entropy of the probabilities, from 0
    to 1), `density` (the share of nodes that no label covers yet and that are like it) and `reach` (the number of
    uncovered nodes that its label would reach along the edges). Each node is chosen after those before it, so that a
    batch has no two nodes that say the same.

    Args:
        data: the run's graph grown since, or with labels added, as in `Run.predict`; None for the run's own graph.

    A node that has a label in any split is never proposed, and the classes of validation and test labels are not used.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    graph, p = run.probabilities(data, device=device)
    picks = pick_labels(graph, p, n)
    rows = torch.from_numpy(picks.nodes)
    confidence, predicted = p[rows].float().max(1)
    names = graph.class_names
    return pd.DataFrame(
        {
            "rank": np.arange(1, len(rows) + 1),
            "id": graph.node_id[picks.nodes],
            "score": picks.score,
            "prediction": [names[c] for c in predicted.tolist()],
            "confidence": confidence.numpy(),
            "uncertainty": uncertainty_of(p[rows]),
            "density": picks.density,
            "reach": picks.reach,
        }
    )


def pick_labels(
    graph: GraphData,
    p: Tensor,
    n: int,
    *,
    z: np.ndarray | None = None,
    weights: Weights | None = None,
) -> Picks:
    """Returns the nodes to label next, from the probabilities `p` `[M, C]` of all nodes.

    `z` `[M, D]` are representations, if they are known already: `smooth_features(graph)`.
    """
    candidates = unlabeled(graph)
    if len(candidates) == 0:
        raise InputError(f"every node of {graph.name} has a label; leave those empty that are to be labeled")
    labeled = graph.train_mask.nonzero().flatten().numpy()
    z = smooth_features(graph) if z is None else z
    adjacency = to_scipy(graph.adjacency)
    return Coverage(adjacency, z, uncertainty_of(p), labeled, candidates, n, weights).pick(n)


def unlabeled(graph: GraphData) -> np.ndarray:
    """`[n]` the nodes of the labeled type that have no label and are in no split."""
    free = (graph.y < 0) & (graph.split == NO_SPLIT)
    if graph.node_types is not None:
        free &= graph.node_types.target_mask
    return free.nonzero().flatten().numpy()


def uncertainty_of(p: Tensor) -> np.ndarray:
    """`[n]` `-Σ_c p_c log p_c / log C`: 0 for certainty, 1 where all classes are alike."""
    p = p.double()
    entropy = torch.special.entr(p).sum(1) / np.log(max(p.size(1), 2))
    return entropy.clamp(0, 1).numpy()


def smooth_features(graph: GraphData) -> np.ndarray:
    """`[M, D]` `Â² X` in principal components, centered and of length 1, with `Â` as GCN has it.

    Representations of the run would not do: with few labels they contain what the model knows already.
    """
    A = to_scipy(graph.adjacency)
    root = np.sqrt(np.maximum(graph.adjacency.degree.double().numpy(), 1))[:, None]
    z = _principal(graph.x.float().numpy())
    for _ in range(SMOOTHING):
        z = (A @ (z / root)) / root
    z = z - z.mean(0)
    return (z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def _principal(x: np.ndarray) -> np.ndarray:
    """`[M, D]` the scores of the rows in the first components; `x` where it has no more columns than that."""
    if min(x.shape) <= CHANNELS:
        return x
    is_sparse = np.count_nonzero(x) < 0.1 * x.size
    u, s, _ = randomized_svd(sp.csr_matrix(x) if is_sparse else x, CHANNELS, n_iter=2, random_state=0)
    return u * s
