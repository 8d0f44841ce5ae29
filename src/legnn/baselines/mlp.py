"""The perceptron, which reads a node's own features alone."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureModel
from legnn.nn.block import NormActDropout
from legnn.nn.features import Features
from legnn.nn.layer import Linear, Nodes, to_logits


class MLP(FeatureModel):
    """`H^k = dropout(relu(norm(H^{k-1} W_k + b_k)))`, `H⁰ = dropout(X)`, and `H^{K-1} W_K + b_K` are the logits.

    It reads no neighbors: it has no stages. With one layer, the states are the logits.
    """

    num_stages = 0

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        hidden = settings.layers - 1
        self.channels = settings.hidden if hidden else data.classes
        self.project = Linear(self.in_channels, self.channels)
        self.matrices = nn.ModuleList(Linear(self.channels, self.channels) for _ in range(hidden - 1))
        self.acts = nn.ModuleList(NormActDropout(settings, self.channels) for _ in range(hidden))
        self.classifier = Linear(self.channels, data.classes) if hidden else None

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`H^{K-1}` `[n, D]`."""
        nodes = self.projected(inputs)
        for k, act in enumerate(self.acts):
            nodes = act(self.matrices[k - 1](nodes) if k else nodes)
        return nodes, None

    def classify(self, nodes: Tensor) -> Tensor:
        """`H^{K-1} W_K + b_K` `[n, C]`."""
        return to_logits(nodes if self.classifier is None else self.classifier(nodes))
