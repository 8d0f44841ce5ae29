"""Means along metapaths: sequences of node types that a walk over a graph with several types passes.

A path is written from its target: `(t, s, u)` stands for the edges `t ← s ← u`, and for the product `M_ts M_su`, where
`M_ts = D^{-1} A_ts` is the mean over the neighbors of type `s` of a node of type `t`. Self-loops are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from legnn.baselines.propagation import neighbor_mean, without_self_loops
from legnn.graph import LabelGraph
from legnn.nn.relations import NodesByType, Relation, relation_graph

Path = tuple[int, ...]
"""The types of a metapath, the target first."""

MOST_PRODUCTS = 2 * 10**7
"""Products of entries that one half of a path of length 4 may take: it then has at most 240 MB, and takes seconds."""


def feature_paths(relations: Sequence[Relation], target: int) -> list[Path]:
    """The paths of length 0, 1 and 2 to the type `target`."""
    once = [(target, source) for source in _sources(relations, target)]
    return [(target,), *once, *((*path, source) for path in once for source in _sources(relations, path[-1]))]


def label_paths(relations: Sequence[Relation], target: int) -> list[Path]:
    """The paths of length 1 and 2 from the type `target` to itself, and of length 4 those that go back as they came."""
    paths = feature_paths(relations, target)
    back = [(*path, *path[-2::-1]) for path in paths if len(path) == 3]
    short = [path for path in paths if len(path) > 1 and path[-1] == target]
    return short + [path for path in back if all((s, t) in relations for t, s in pairwise(path))]


def _sources(relations: Sequence[Relation], kind: int) -> list[int]:
    return [source for source, target in relations if target == kind]


@dataclass(frozen=True, eq=False)
class MetapathGraph:
    """The edges of each relation of a whole graph, without self-loops."""

    nodes: NodesByType
    edges: dict[Relation, LabelGraph]

    def means(self, paths: Sequence[Path], x: Sequence[Tensor]) -> dict[Path, Tensor]:
        """`M_ts M_su … x` `[n_t, D]` of each path, for `x` `[n, D]` of each type; common ends are computed once."""
        known: dict[Path, Tensor] = {}

        def mean(path: Path) -> Tensor:
            if len(path) == 1:
                return x[path[0]]
            if path not in known:
                known[path] = neighbor_mean(self.edges[path[1], path[0]], mean(path[1:]))
            return known[path]

        return {path: mean(path) for path in paths}

    def self_weight(self, path: Path, dtype: torch.dtype) -> Tensor | None:
        """`[n_t, 1]` the diagonal of a path's product, computed once: the weight of a node in its own mean.

        None where that would take too long: for a path of length 4 with more than `MOST_PRODUCTS` in a half.
        """
        if path not in self._self_weights:
            self._self_weights[path] = self._diagonal(path)
        weight = self._self_weights[path]
        return None if weight is None else weight.to(dtype)

    @cached_property
    def _self_weights(self) -> dict[Path, Tensor | None]:
        return {}

    def _diagonal(self, path: Path) -> Tensor | None:
        middle, device = len(path) // 2, self.edges[path[1], path[0]].adjacency.col.device
        if len(path) == 2:
            # without self-loops, no edge returns
            return torch.zeros(self.nodes.counts[path[0]], 1, device=device)
        halves = [[self._matrix(*pair) for pair in pairwise(half)] for half in (path[: middle + 1], path[middle:])]
        if any(len(half) > 1 and _products(*half) > MOST_PRODUCTS for half in halves):
            return None
        # (L R)_ii = Σ_j L_ij R_ji, without the product
        left, right = (reduce(lambda first, second: first @ second, half) for half in halves)
        return torch.from_numpy(np.asarray(left.multiply(right.T.tocsr()).sum(1))).to(device)

    def _matrix(self, target: int, source: int) -> Any:
        """`M_ts` in SciPy's CSR, in double precision."""
        # not every command needs SciPy, which takes a moment to import
        from scipy.sparse import csr_matrix, diags

        adjacency = self.edges[source, target].adjacency
        weight = np.ones(adjacency.num_edges) if adjacency.weight is None else adjacency.weight.cpu().double().numpy()
        size = adjacency.num_rows, adjacency.num_cols
        # a copy: parallel edges are merged in place
        matrix = csr_matrix((weight, adjacency.col.cpu().numpy(), adjacency.rowptr.cpu().numpy()), size, copy=True)
        matrix.sum_duplicates()
        total = np.asarray(matrix.sum(1)).ravel()
        return (diags(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)) @ matrix).tocsr()


def _products(first: Any, second: Any) -> int:
    """The number of products of entries in `first @ second`, at least the entries that it has."""
    return int(np.diff(second.indptr)[first.indices].sum(dtype=np.int64))


def metapath_graph(graph: LabelGraph, num_types: int, relations: Sequence[Relation]) -> MetapathGraph:
    """Returns the edges of `graph` by relation, without self-loops, grouped once for an adjacency."""

    def make() -> MetapathGraph:
        grouped = relation_graph(graph, num_types, relations)
        edges = {
            (source, target): without_self_loops(edges) if source == target else edges
            for (source, target), edges in grouped.relations.items()
        }
        return MetapathGraph(grouped.targets, edges)

    return graph.edge_cache.cached(("edges without self-loops", num_types, tuple(relations)), make)
