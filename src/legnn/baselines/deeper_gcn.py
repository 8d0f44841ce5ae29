"""DeeperGCN (Li et al., 2020): many layers with softmax aggregation and residuals before the activation."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GENConv

from legnn.baselines.edge_messages import EdgeMessageModel, columns
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.base import Nodes
from legnn.nn.block import NormActDropout
from legnn.nn.features import Features, project
from legnn.nn.layer import Linear, targets_of, to_logits


class DeeperGCN(EdgeMessageModel):
    r"""`H⁰ = dropout(X) P + b`, `H^{k+1} = H^k + GEN_k(dropout(relu(norm_k(H^k))))`, logits `relu(norm(H^K)) W + b`.

    `GEN` is PyG's `GENConv`: `MLP(h_i + Σ_j softmax_j(t m_j) m_j)` with messages `m_j = relu(h_j) + ε`, a softmax over
    the neighbors in each channel, a learned temperature `t`, and two matrices with the norm between them.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        hidden, self.num_stages = settings.hidden, settings.layers
        self.channels, self.num_classes, self.input_dropout = hidden, data.classes, settings.input_dropout
        norm = None if settings.norm == "none" else settings.norm
        self.project = Linear(self.in_channels, hidden)
        self.layers = nn.ModuleList(
            GENConv(hidden, hidden, aggr="softmax", learn_t=True, num_layers=2, norm=norm)
            for _ in range(settings.layers)
        )
        self.acts = nn.ModuleList(NormActDropout(settings, hidden) for _ in range(settings.layers + 1))
        self.classifier = Linear(hidden, data.classes)

    @property
    def first(self) -> nn.Module:
        """`P`."""
        return self.project

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`H⁰` `[n, D]`."""
        nodes = project(inputs, self.project, self.input_dropout, training=self.training)
        return columns(nodes, self.channels), None

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, first: Nodes | None) -> Nodes:
        """`H^{k+1}` `[M, D]`."""
        x = self.acts[k](nodes)
        return targets_of(nodes, block) + self.layers[k]((x, targets_of(x, block)), self.edges_of(block)), None

    def classify(self, nodes: Tensor) -> Tensor:
        """`dropout(relu(norm(H^K))) W + b` `[n, C]`."""
        return to_logits(self.classifier(self.acts[-1](nodes)), self.num_classes)
