"""Greedy choice of labels that cover most of the nodes that no label covers yet, by edges and by likeness.

A label at `s` covers a node `u` in two ways: by travel along the edges, `ρ_us = (P^K)_us` with `P = D⁻¹A`, and by
likeness of representations, `k_us = exp(-‖z_u - z_s‖² / 2σ²)`. The part of a node that all labels `s` leave open is
`r_u = exp(-Σ_s (ρ_us + k_us))`, and the nodes are covered best by the labels that maximize `Σ_u w_u (1 - r_u)`, which
is submodular: each pick that gains most, given those before it, is nearly as good as the best set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from legnn.ops.csr.adjacency import Adjacency

ANCHORS = 1_000
"""Nodes, drawn at random, over which density is summed; all nodes would take quadratic time."""
CANDIDATES = 20_000
"""Largest number of candidates; of more, this many are drawn."""
LABELED = 4_000
"""Largest number of labeled nodes that nodes are compared with; of more, this many are drawn."""
CHUNK = 2_000
TINY = 1e-4


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of the three parts of a score; chosen by `benchmarks.active_learning choose`.

    A candidate's score is `density · reach^a · uncertainty^b`: a product needs no common scale, and a hub that reaches
    a hundred times as far as most is not worth as many of them.
    """

    reach: float = 0.25
    """`a`."""
    uncertainty: float = 0.25
    """`b`."""
    uncertain: float = 0.5
    """Additional worth of covering an uncertain node, from 0 to 1."""
    width: float = 0.2
    """The part of the nodes that a label is like, with 1 as many as there are for each label there will be."""
    hops: int = 2
    """`K`: how far a label travels."""


@dataclass(frozen=True, eq=False)
class Picks:
    """Nodes that were picked, best first, with their scores when they were picked."""

    nodes: np.ndarray
    """`[n]`."""
    score: np.ndarray
    """`[n]`, falling."""
    density: np.ndarray
    """`[n]` the share of uncovered nodes that are like each."""
    reach: np.ndarray
    """`[n]` the number of uncovered nodes that each label would reach along the edges."""


class Coverage:
    """The part of each node that the labels so far leave open, and what each candidate would add.

    Args:
        adjacency: `[M, M]` `A`, row = target.
        z: `[M, D]` representations.
        uncertainty: `[M]` from 0 to 1.
        labeled: `[L]` the nodes that have a label.
        candidates: the nodes that may be picked.
        number: how many are going to be picked.
    """

    def __init__(
        self,
        adjacency: sp.csr_matrix,
        z: np.ndarray,
        uncertainty: np.ndarray,
        labeled: np.ndarray,
        candidates: np.ndarray,
        number: int,
        weights: Weights | None = None,
        seed: int = 0,
    ) -> None:
        self.weights = weights or Weights()
        self.uncertainty = uncertainty
        rng = np.random.default_rng(seed)
        self.candidates, labeled = _draw(rng, candidates, CANDIDATES), np.sort(labeled)
        self._travel = travel_matrix(adjacency)
        self._back = self._travel.T.tocsr()
        self._z = np.ascontiguousarray(z, dtype=np.float32)
        self._squares = np.square(self._z).sum(1)
        nodes = np.arange(len(z))
        self._anchors = _draw(rng, nodes, ANCHORS)
        self._scale = self._bandwidth(len(labeled) + number)
        self._near = self._likeness(self._anchors, self.candidates)
        some = _draw(rng, labeled, LABELED)
        covered = self.travel_from(labeled)
        for begin in range(0, len(nodes), CHUNK):
            rows = nodes[begin : begin + CHUNK]
            covered[rows] += self._likeness(rows, some).sum(1) * (len(labeled) / max(len(some), 1))
        self.worth = 1 - self.weights.uncertain * (1 - uncertainty)
        self.open = np.exp(-covered)
        """`[M]` `r_u`."""
        self.density = self._sum_of_anchors(self.worth * self.open)
        """`[n]` the mean of `w_u r_u k_us` of each candidate over the anchors `u`."""

    def travel_from(self, sources: np.ndarray) -> np.ndarray:
        """`[M]` `Σ_s ρ_us` over the sources."""
        mass = np.zeros(len(self._z))
        mass[sources] = 1
        for _ in range(self.weights.hops):
            mass = self._travel @ mass
        return mass

    def reach(self) -> np.ndarray:
        """`[n]` `Σ_u w_u r_u ρ_us` of each candidate: `P^Kᵀ (w r)`, without a power of `P`."""
        mass = self.worth * self.open
        for _ in range(self.weights.hops):
            mass = self._back @ mass
        return mass[self.candidates]

    def cover(self, node: int) -> None:
        """Adds a label."""
        label, before = np.array([node]), self.open
        self.open = before * np.exp(-self.travel_from(label) - self._likeness(np.arange(len(self._z)), label)[:, 0])
        self.density = self.density - self._sum_of_anchors(self.worth * (before - self.open))

    def _sum_of_anchors(self, values: np.ndarray) -> np.ndarray:
        """`[n]` the mean of `v_u k_us` over the anchors, without those of next to nothing: for one label, most."""
        of_anchors = values[self._anchors].astype(np.float32) / len(self._anchors)
        some = np.flatnonzero(of_anchors > TINY * of_anchors.max(initial=0))
        return of_anchors[some] @ self._near[some]

    def pick(self, number: int) -> Picks:
        """Returns the candidates that gain most, each after those before it."""
        free = np.ones(len(self.candidates), dtype=bool)
        uncertainty = np.maximum(self.uncertainty[self.candidates], 1e-6) ** self.weights.uncertainty
        picks: list[tuple[int, float, float, float]] = []
        for _ in range(min(number, len(free))):
            # a difference of sums that is below 0 is 0
            density, reach = np.maximum(self.density, 0), self.reach()
            score = np.where(free, density * reach**self.weights.reach * uncertainty, -np.inf)
            best = int(score.argmax())
            picks.append((self.candidates[best], score[best], density[best], reach[best]))
            free[best] = False
            self.cover(int(self.candidates[best]))
        nodes, *parts = zip(*picks, strict=True)
        return Picks(np.array(nodes, dtype=np.int64), *(np.array(part, dtype=np.float64) for part in parts))

    def _bandwidth(self, labels: int) -> float:
        """`2σ²`: the squared distance below which one part in `labels` of all pairs of nodes are."""
        squares = self._distances(self._anchors[:500], self._anchors)
        share = min(max(self.weights.width / labels, 1 / len(self._anchors)), 1)
        # where many nodes are equal the quantile may be 0, and rounding would tell them apart
        return float(max(np.quantile(squares, share), 0.01 * squares.mean(), 1e-12))

    def _distances(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        cross = self._z[rows] @ self._z[others].T
        return np.maximum(self._squares[rows, None] + self._squares[None, others] - 2 * cross, 0)

    def _likeness(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """`[r, o]` `k` between nodes, 1 between a node and itself."""
        return np.exp(-self._distances(rows, others) / self._scale)


def travel_matrix(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    """`P = D⁻¹A`, whose rows are the shares of a node's neighbors in what it hears; empty rows stay empty."""
    degree = np.asarray(adjacency.sum(1)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree, dtype=np.float64), where=degree > 0)
    return sp.diags(inverse) @ adjacency.astype(np.float64)


def _draw(rng: np.random.Generator, nodes: np.ndarray, most: int) -> np.ndarray:
    return np.sort(rng.choice(nodes, most, replace=False)) if len(nodes) > most else np.sort(nodes)


def to_scipy(adjacency: Adjacency) -> sp.csr_matrix:
    """`A` as a SciPy matrix, row = target."""
    weight = np.ones(adjacency.num_edges) if adjacency.weight is None else adjacency.weight.double().numpy()
    shape = (adjacency.num_rows, adjacency.num_cols)
    return sp.csr_matrix((weight, adjacency.col.numpy(), adjacency.rowptr.numpy()), shape=shape)
