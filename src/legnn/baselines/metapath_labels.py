"""A perceptron on features and label histograms along metapaths, after SeHGNN (Yang et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from legnn.baselines.label_propagation import shown_one_hot
from legnn.baselines.metapaths import MetapathGraph, feature_paths, label_paths, metapath_graph
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureInputs
from legnn.nn.block import NormActDropout
from legnn.nn.features import Features, project, to_sparse_if_faster
from legnn.nn.layer import Linear, add_bias, glorot_linear, linear, to_logits
from legnn.nn.relations import SINGLE_RELATION

LEAST_SHOWN = 1e-6
"""A smaller share of shown labels is none: what rounding leaves of a node's own label is below it."""


class MetapathLabels(FeatureInputs):
    """`H¹ = Σ_p dropout(P_p X) W_p + Σ_q share((P_q - diag P_q) Y) V_q + b`, and a perceptron on it.

    `P_p` is the mean along a metapath of length 0, 1 or 2 to the type that has labels, `P_q` along one from this type
    to itself, of length 1, 2 or 4; `Y` are the shown labels. Without the diagonal, no node reads its own. `share`
    divides a row by its sum: more labels are shown in evaluation than in training, and sums would grow. `layers`
    counts the matrices of the perceptron, the first of which are `W` and `V`: `H^{k+1} = dropout(relu(norm(H^k))) W_k`.

    A path of length 4 is left out where its diagonal is too expensive (`metapaths.MOST_PRODUCTS`). Logits of other
    types are zero. A homogeneous graph has one type, and paths of length 0 to 4. `P_p X` is computed once for each
    `inputs`, which are recognized by identity.
    """

    full_batch_reason = "it reads all labels that a metapath reaches"
    uses_labels = True
    project: nn.ModuleList

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
        h: Tensor | None = None
        for x, module in zip(self._means(inputs, graph, paths), self.project, strict=True):
            assert isinstance(module, Linear)
            part = project(x, module, self.input_dropout, training=self.training)
            h = part if h is None else h + part
        assert h is not None
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
