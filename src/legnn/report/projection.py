"""Points of nodes and labels in two dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legnn.analysis.projection import WIDEST, tsne
from legnn.analysis.threads import limit_threads
from legnn.errors import InputError, OutOfMemory
from legnn.runs import Predictor

MOST_POINTS = 20_000
LANDMARKS = 4_000
"""t-SNE of more points would take minutes; the others are placed next to similar ones."""
NEAREST = 3
ITERATIONS = 500
"""Half of scikit-learn's: by then the classes are apart."""
SEED = 0


@dataclass(frozen=True, kw_only=True)
class NodeMap:
    """Points of some nodes."""

    nodes: np.ndarray
    """`[m]` rows of the table of nodes, ascending."""
    points: np.ndarray
    """`[m, 2]` within the unit square."""
    words: str
    """The method of projection."""


@dataclass(frozen=True, kw_only=True)
class HiddenStates:
    """Representations to project."""

    nodes: np.ndarray
    """`[n, D]`."""
    labels: np.ndarray | None
    """`[C, D]`; None where labels are not nodes."""
    words: str


def hidden_states(run: Predictor, probabilities: np.ndarray, device: str) -> HiddenStates:
    """Returns the representations of the member with the largest weight that has any.

    Without representations, these are the logarithms of the probabilities `[n, C]`.
    """
    for k in np.argsort([-weight for weight in run.weights], kind="stable"):
        member = run.members[k]
        try:
            states = member.representations(device=device)
        except (InputError, OutOfMemory):
            continue
        words = "the last hidden representations"
        if len(run.members) > 1 and member.folder is not None:
            words += f" of the member {member.folder.name}"
        return HiddenStates(nodes=states.nodes_without_own_label, labels=states.labels, words=words)
    return HiddenStates(
        nodes=np.log(np.maximum(probabilities, 1e-4)), labels=None, words="the logarithms of the probabilities"
    )


def sample_nodes(count: int, always: np.ndarray, most: int = MOST_POINTS, seed: int = SEED) -> np.ndarray:
    """Returns ascending rows of `count` nodes, at most `most`: those of `always`, and others drawn by the seed."""
    if count <= most:
        return np.arange(count)
    always = np.unique(always)[:most]
    others = np.setdiff1d(np.arange(count), always)
    drawn = np.random.default_rng(seed).choice(others, most - len(always), replace=False)
    return np.sort(np.concatenate([always, drawn]))


def project(states: HiddenStates, always: np.ndarray) -> NodeMap:
    """Returns the map of nodes, with the nodes `always` among its points."""
    nodes = sample_nodes(len(states.nodes), always)
    rows = _principal(np.ascontiguousarray(states.nodes[nodes], dtype=np.float32))
    words = f"t-SNE of {states.words}, no node showing its own label"
    if len(nodes) < len(states.nodes):
        words += f"; {len(nodes):,} of {len(states.nodes):,} nodes, drawn with seed {SEED}"
    if len(rows) < 4:
        points = np.zeros((len(rows), 2)) + np.arange(len(rows))[:, None]
    elif len(rows) <= LANDMARKS:
        points = tsne(rows, iterations=ITERATIONS)
    else:
        points = _tsne_by_landmarks(rows)
        words += f"; {LANDMARKS:,} of them projected, the others next to the {NEAREST} most similar of these"
    return NodeMap(nodes=nodes, points=_unit_square(points), words=words)


def label_map(labels: np.ndarray) -> np.ndarray:
    """`[C, 2]` the two first principal components of labels `[C, D]` of length 1: near are those of a small angle."""
    unit = labels / np.maximum(np.linalg.norm(labels, axis=1, keepdims=True), 1e-12)
    centered = unit - unit.mean(0)
    left, size, _ = np.linalg.svd(centered, full_matrices=False)
    points = np.zeros((len(labels), 2))
    width = min(2, len(size))
    points[:, :width] = left[:, :width] * size[:width]
    return points


def _principal(rows: np.ndarray) -> np.ndarray:
    # scikit-learn takes a second to import
    from sklearn.decomposition import PCA

    if rows.shape[1] <= WIDEST or len(rows) <= WIDEST:
        return rows
    return PCA(WIDEST, random_state=SEED).fit_transform(rows)


def _tsne_by_landmarks(rows: np.ndarray) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    draw = np.random.default_rng(SEED)
    landmarks = draw.choice(len(rows), LANDMARKS, replace=False)
    placed = tsne(rows[landmarks], iterations=ITERATIONS)
    with limit_threads(len(rows)):
        distance, near = NearestNeighbors(n_neighbors=NEAREST).fit(rows[landmarks]).kneighbors(rows)
    weight = 1 / np.maximum(distance, 1e-9)
    points = (placed[near] * (weight / weight.sum(1, keepdims=True))[..., None]).sum(1)
    points[landmarks] = placed
    return points


def _unit_square(points: np.ndarray) -> np.ndarray:
    low, high = points.min(0, initial=np.inf), points.max(0, initial=-np.inf)
    size = float(np.max(high - low, initial=0.0)) or 1.0
    return (points - (low + high) / 2) / size + 0.5
