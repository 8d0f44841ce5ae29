"""PyG's own GCN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.lazy import lazy_module
from legnn.nn import DataShape
from legnn.nn.base import FeatureInputs

pyg_nn = lazy_module("torch_geometric.nn")

NORMS: dict[str | None, dict[str, Any]] = {
    "batch": {"norm": "BatchNorm"},
    "layer": {"norm": "LayerNorm", "norm_kwargs": {"mode": "node"}},
}


class PyGGCN(FeatureInputs):
    """`torch_geometric.nn.GCN` on the features alone. It computes in single precision, and on the whole graph."""

    full_batch_reason = "it is PyG's own module (`model.backbone=gcn` and `model.labels=vanilla` have them)"
    uses_labels = False
    takes_sparse, ignores_dtype = False, True
    decayed = ("gcn.convs.0",)

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        # PyG's module knows no types: each has columns of its own
        super().__init__(replace(settings, published=replace(settings.published, shared_projection=False)), data)
        self.gcn = pyg_nn.GCN(
            self.in_channels,
            settings.hidden,
            settings.layers,
            data.classes,
            settings.dropout,
            # the graph has its self-loops already, where the settings ask for them
            add_self_loops=False,
            **NORMS.get(settings.norm, {}),
        )

    def forward(self, inputs: Tensor, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""
        return self.gcn(inputs, graph.adjacency.edge_index, graph.adjacency.weight)
