"""What models share whose features are projected before the first layer."""

from __future__ import annotations

from torch import nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn import DataShape
from legnn.nn.feature_model import FeatureModel
from legnn.nn.features import Features, project
from legnn.nn.layer import Linear, Nodes


class ProjectedModel(FeatureModel):
    """A staged model with `H⁰ = dropout(X) P + b`."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.input_dropout = settings.input_dropout
        self.project = Linear(self.in_channels, settings.hidden)

    @property
    def decayed_module(self) -> nn.Module:
        """`P`."""
        return self.project

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`H⁰` `[n, D]`."""
        return project(inputs, self.project, self.input_dropout, training=self.training), None
