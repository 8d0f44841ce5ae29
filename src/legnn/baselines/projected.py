"""Base classes of models that project features before the first layer, or compute a message for every edge."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.base import FeatureModel
from legnn.nn.features import Features
from legnn.nn.layer import Linear, Nodes, to_logits


class ProjectedModel(FeatureModel):
    """A staged model with `H⁰ = dropout(X) P + b`, layers of as many channels, and the logits `H^K W + b`."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.channels, self.num_stages = settings.hidden, settings.layers
        self.project = Linear(self.in_channels, settings.hidden)
        self.layers = nn.ModuleList(self.make_layer(settings, data) for _ in range(settings.layers))
        self.classifier = Linear(settings.hidden, data.classes)

    def make_layer(self, settings: ModelSettings, data: DataShape) -> nn.Module:
        """Returns a layer with weights of its own."""
        raise NotImplementedError

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
