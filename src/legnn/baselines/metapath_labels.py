"""A perceptron on features and label histograms along metapaths, after SeHGNN (Yang et al., 2023).

A metapath is a sequence of node types that a walk over a graph with several types passes. It is written from its
target: `(t, s, u)` stands for the edges `t ← s ← u`, and for the product `M_ts M_su`, where `M_ts = D^{-1} A_ts` is the
mean over the neighbors of type `s` of a node of type `t`. Self-loops are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from legnn.baselines.label_propagation import shown_one_hot
from legnn.baselines.propagation import neighbor_mean, without_self_loops
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureInputs
from legnn.nn.block import NormActDropout
from legnn.nn.features import Features, project, to_sparse_if_faster
from legnn.nn.layer import Linear, add_bias, glorot_linear, linear, to_logits
from legnn.nn.relations import SINGLE_RELATION, NodesByType, Relation, relation_graph

Path = tuple[int, ...]
"""The types of a metapath, the target first."""

MOST_PRODUCTS = 2 * 10**7
"""Products of entries that one half of a path of length 4 may take: it then has at most 240 MB, and takes seconds."""
LEAST_SHOWN = 1e-6
"""A smaller share of shown labels is none: what rounding leaves of a node's own label is below it."""


class MetapathLabels(FeatureInputs):
    """`H¹ = Σ_p dropout(P_p X) W_p + Σ_q share((P_q - diag P_q) Y) V_q + b`, and a perceptron on it.

    `P_p` is the mean along a metapath of length 0, 1 or 2 to the type that has labels, `P_q` along one from this type
    to itself, of length 1, 2 or 4; `Y` are the shown labels. Without the diagonal, no node reads its own. `share`
    divides a row by its sum: more labels are shown in evaluation than in training, and sums would grow. `layers`
    counts the matrices of the perceptron, the first of which are `W` and `V`: `H^{k+1} = dropout(relu(norm(H^k))) W_k`.

    A path of length 4 is left out where its diagonal is too expensive (`MOST_PRODUCTS`). Logits of other
    types are zero. A homogeneous graph has one type, and paths of length 0 to 4. `P_p X` is computed once for each
    `inputs`, which are recognized by identity.
    """

    full_batch_reason = "it reads all labels that a metapath reaches"
    uses_labels = True
    project: nn.ModuleList  # of `Linear`

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.types, self.target = data.types, data.target
        self.relations = tuple(data.relations) if data.types > 1 else SINGLE_RELATION
        self.feature_paths = feature_paths(self.relations, self.target)
        self.label_paths = label_paths(self.relations, self.target)
        widths = [*[settings.hidden] * (settings.layers - 1), data.classes]
        self.project = nn.ModuleList(glorot_linear(data.features, widths[0]) for _ in self.feature_paths)  # W
        self.project_labels = nn.ModuleList(glorot_linear(data.classes, widths[0]) for _ in self.label_paths)  # V
        self.bias = nn.Parameter(torch.zeros(widths[0]))
        self.acts = nn.ModuleList(NormActDropout(settings, width) for width in widths[:-1])
        self.matrices = nn.ModuleList(map(Linear, widths[:-1], widths[1:]))

    def prepare(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """Features `[M, F]` that can be averaged: scaled, and not sparse."""
        return self.scale(x, node_type).to(dtype or x.dtype)

    def forward(self, inputs: Tensor, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""
        paths = metapath_graph(graph, self.types, self.relations)
        means = zip(self._means(inputs, graph, paths), self.project, strict=True)
        h = reduce(
            torch.add,
            (project(x, cast(Linear, W), self.input_dropout, training=self.training) for x, W in means),
        )
        for y, weight in self._histograms(graph, paths):
            h = h + linear(y.to(h.dtype), weight)
        h = add_bias(h, self.bias)
        for act, matrix in zip(self.acts, self.matrices, strict=True):
            h = matrix(act(h))
        logits = to_logits(h)
        counts = enumerate(paths.nodes.counts)
        return paths.nodes.join(
            [logits if t == self.target else logits.new_zeros(n, logits.size(1)) for t, n in counts]
        )

    @torch.inference_mode(False)
    @torch.no_grad()
    def _means(self, inputs: Tensor, graph: LabelGraph, paths: MetapathGraph) -> list[Features]:
        """`P_p X` of each path, sparse where that is faster."""
        key = inputs, tuple(self.feature_paths)
        last: dict[object, list[Features]] = graph.adjacency.cached("means of the last inputs", dict)
        if key not in last:
            means = paths.means(self.feature_paths, paths.nodes.split(inputs))
            # entries of sparse features are stored in single precision
            wide = torch.promote_types(inputs.dtype, torch.float32)
            # those of earlier inputs would take memory for nothing
            last.clear()
            last[key] = [to_sparse_if_faster(mean.to(wide), inputs.dtype) for mean in means.values()]
        return last[key]

    def _histograms(self, graph: LabelGraph, paths: MetapathGraph) -> Iterator[tuple[Tensor, Tensor]]:
        """`share((P_q - diag P_q) Y)` `[n_t, C]` and `V_q` of each path that is not left out."""
        y = shown_one_hot(graph).to(self.bias.dtype)
        by_type = paths.nodes.split(y)
        self_weights = {path: paths.self_weight(path, y.dtype) for path in self.label_paths}
        means = paths.means([path for path, weight in self_weights.items() if weight is not None], by_type)
        for (path, weight), module in zip(self_weights.items(), self.project_labels, strict=True):
            if weight is not None:
                yield _share(means[path] - weight * by_type[self.target]), module.get_parameter("weight")


def _share(y: Tensor) -> Tensor:
    """Non-negative `y` `[n, C]` with rows that sum to 1, zero where no label is reached."""
    total = y.sum(1, keepdim=True)
    return torch.where(total > LEAST_SHOWN, y / total.clamp(min=LEAST_SHOWN), 0.0)


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
    _self_weights: dict[Path, Tensor | None] = field(default_factory=dict)

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
