"""PyG's own GCN."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.lazy import lazy_module
from legnn.nn import DataShape, Model
from legnn.nn.features import scatter_by_type
from legnn.nn.scaling import FeatureScale

pyg_nn = lazy_module("torch_geometric.nn")

NORMS: dict[str | None, dict[str, Any]] = {
    "batch": {"norm": "BatchNorm"},
    "layer": {"norm": "LayerNorm", "norm_kwargs": {"mode": "node"}},
}


class _Dropout(nn.Dropout):
    """PyTorch's, drawn from the generator of the run, which may share the process with others."""

    def forward(self, input: Tensor) -> Tensor:
        """`[n, D]`"""
        if not self.training or self.p == 0:
            return input
        keep = torch.empty_like(input).bernoulli_(1 - self.p)
        return input * keep.div_(1 - self.p)


class PyGGCN(Model):
    """`torch_geometric.nn.GCN` on the features alone. It computes in single precision, and on the whole graph."""

    full_batch_reason = "it is PyG's own module (`backbone=gcn` and `labels=vanilla` have them)"
    uses_labels = False

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        self.num_types = data.types
        self.scale = FeatureScale(settings.scale, data.features, data.types)
        self.gcn = pyg_nn.GCN(
            data.types * data.features,
            settings.hidden,
            settings.layers,
            data.classes,
            # the graph has its self-loops already, where the settings ask for them
            add_self_loops=False,
            **NORMS.get(settings.norm, {}),
        )
        self.gcn.dropout = _Dropout(settings.dropout)

    @property
    def decayed_module(self) -> nn.Module:
        """The first convolution."""
        return self.gcn.convs[0]

    def fit_inputs(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Take the statistics of the features `[M, F]` that `inputs` scales by."""
        self.scale.fit(x, node_type)

    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """Scaled features `[M, F]`; of several node types, each in columns of its own."""
        scaled: Tensor = self.scale(x, node_type)
        return scaled if node_type is None else scatter_by_type(scaled, node_type, self.num_types)

    def forward(self, inputs: Tensor, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""
        return self.gcn(inputs, graph.adjacency.edge_index, graph.adjacency.weight)
