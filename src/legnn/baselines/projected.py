"""Base classes of models: features projected before the first layer, messages for every edge, whole graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureInputs, FeatureModel
from legnn.nn.block import NormActDropout
from legnn.nn.features import Features
from legnn.nn.layer import Linear, Nodes, add_bias, glorot_linear, to_logits


class ProjectedModel(FeatureModel):
    """A staged model with `H⁰ = dropout(X) P + b`, layers of as many channels, and the logits `H^K W + b`."""

    layer_type: Callable[[ModelSettings, DataShape], nn.Module]
    """Makes a layer."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.channels, self.num_stages = settings.hidden, settings.layers
        self.project = Linear(self.in_channels, settings.hidden)
        self.layers = nn.ModuleList(self.layer_type(settings, data) for _ in range(settings.layers))
        self.classifier = Linear(settings.hidden, data.classes)

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`H⁰` `[n, D]`."""
        return self.projected(inputs), None

    def classify(self, nodes: Tensor) -> Tensor:
        """`H^K W + b` `[n, C]`, in single precision at least."""
        return to_logits(self.classifier(nodes))


class EdgeMessageModel(FeatureModel):
    """A staged model with tensors `[E, D]`. It computes in single precision, and reads no edge weights."""

    takes_weights = False
    ignores_dtype = True
    # 3.2 were measured with UniMP, 3.6 with GaAN
    edge_matrices = 4

    def edges_of(self, block: LabelGraph) -> Tensor:
        """`[2, E]` the edges of a block (source, target); raises `InputError` if they have weights."""
        self.check_weights(weighted=block.adjacency.weight is not None)
        return block.adjacency.edge_index


Times = Callable[[Tensor], Tensor]
"""`x ↦ Â x` `[M, D]`."""


class WholeGraphGCN(FeatureInputs):
    """`H^k = dropout(relu(norm(Â H^{k-1} W_k + b_k)))`, `H⁰ = dropout(X)`; `Â H^{K-1} W_K + b_K` are the logits."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        widths = [self.in_channels, *[settings.hidden] * (settings.layers - 1), data.classes]
        self.project = glorot_linear(*widths[:2])  # W_1
        self.matrices = nn.ModuleList(map(glorot_linear, widths[1:-1], widths[2:]))  # W_2, …
        self.acts = nn.ModuleList(NormActDropout(settings, width) for width in widths[1:-1])
        # a batch norm would cancel the bias
        biased = [] if settings.norm == "batch" else widths[1:-1]
        self.biases = nn.ParameterList(torch.zeros(width) for width in biased)
        self.last_bias = nn.Parameter(torch.zeros(data.classes))

    @abstractmethod
    def times(self, graph: LabelGraph, dtype: torch.dtype) -> Times:
        """The product with `Â` for states in `dtype`."""

    def forward(self, inputs: Features, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`."""
        x = self.projected(inputs)
        times = self.times(graph, x.dtype)
        for k, (act, matrix) in enumerate(zip(self.acts, self.matrices, strict=True)):
            x = matrix(act(add_bias(times(x), self.biases[k] if len(self.biases) else None)))
        return to_logits(add_bias(times(x), self.last_bias))
