"""GaAN (Zhang et al., 2018): attention whose heads are gated at each node."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.projected import EdgeMessageModel, ProjectedModel
from legnn.baselines.propagation import neighbor_mean
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.lazy import lazy_module
from legnn.nn import DataShape
from legnn.nn.block import NormActDropout
from legnn.nn.layer import Nodes, channels_per_head, targets_of

pyg_utils = lazy_module("torch_geometric.utils")

SLOPE = 0.1
"""Slope of the LeakyReLU of the values."""


class GatedAttention(nn.Module):
    r"""`y_i = FC_o(x_i ‖ g_i^1 Σ_j a_ij^1 v_j^1 ‖ … ‖ g_i^H Σ_j a_ij^H v_j^H)`.

    In head `h`, `a_ij^h = softmax_j(FC_xa^h(x_i) · FC_za^h(x_j))` and `v_j^h = LeakyReLU(FC_v^h(x_j))`. The gates are
    `g_i = sigmoid(FC_g(x_i ‖ max_j FC_m(x_j) ‖ mean_j x_j))` `[H]`. Keys, values of a head and `FC_m` have `D / H`
    channels.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        channels, self.heads = settings.hidden, settings.attention.heads
        each = channels_per_head(channels, self.heads)
        self.query = nn.Linear(channels, channels)  # FC_xa
        self.key = nn.Linear(channels, channels)  # FC_za
        self.value = nn.Linear(channels, channels)  # FC_v
        self.pool = nn.Linear(channels, each)  # FC_m
        self.gate = nn.Linear(2 * channels + each, self.heads)  # FC_g
        self.out = nn.Linear(2 * channels, channels)  # FC_o

    def forward(self, x: Tensor, graph: LabelGraph, edge_index: Tensor) -> Tensor:
        """Shapes: `x` `[N, D]`, `edge_index` `[2, E]` (source, target); returns `[M, D]`."""
        source, target = edge_index
        receivers, size = targets_of(x, graph), graph.num_nodes
        gates = self._gates(x, receivers, graph, edge_index)
        score = (self._split(self.query(receivers), target) * self._split(self.key(x), source)).sum(-1)
        attention = pyg_utils.softmax(score, target, num_nodes=size)[..., None]
        values = self._split(F.leaky_relu(self.value(x), SLOPE), source)
        heads = values.new_zeros(size, *values.shape[1:]).index_add(0, target, attention * values)
        return self.out(torch.cat([receivers, (gates[..., None] * heads).flatten(1)], 1))

    def _gates(self, x: Tensor, receivers: Tensor, graph: LabelGraph, edge_index: Tensor) -> Tensor:
        """`g` `[M, H]`."""
        source, target = edge_index
        pooled = self.pool(x).index_select(0, source)
        largest = pooled.new_zeros(graph.num_nodes, pooled.size(1))
        # zero for a node without neighbors
        largest = largest.scatter_reduce(0, target[:, None].expand_as(pooled), pooled, "amax", include_self=False)
        return torch.sigmoid(self.gate(torch.cat([receivers, largest, neighbor_mean(graph, x)], 1)))

    def _split(self, x: Tensor, nodes: Tensor) -> Tensor:
        """The rows `nodes` `[E]` of `x`, `[E, H, D / H]`."""
        return x.index_select(0, nodes).unflatten(1, (self.heads, -1))


class GaAN(EdgeMessageModel, ProjectedModel):
    """`H⁰ = dropout(X) P + b`, `H^{k+1} = dropout(relu(norm(attention_k(H^k))))`, logits `H^K W + b`."""

    layer_type = GatedAttention

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.acts = nn.ModuleList(NormActDropout(settings, settings.hidden) for _ in range(settings.layers))

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H^{k+1}` `[M, D]`."""
        return self.acts[k](self.layers[k](nodes, block, self.edges_of(block))), None
