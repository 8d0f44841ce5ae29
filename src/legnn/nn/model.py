"""The model: `encoder → layers → classifier`, for every backbone and every label usage."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn.block import Block
from legnn.nn.encoder import Encoder, FeatureScale
from legnn.nn.features import Features, TypedFeatures, compact, dense, spread
from legnn.nn.layer import Linear


class Representations(NamedTuple):
    """What the last layer leaves."""

    nodes: Tensor
    """`Z_N` `[M, D]`."""
    labels: Tensor | None
    """`[C, D]`: the labels as the last layer read them; None where labels are not nodes. The paper's `Z_L` would be one
    more step, whose parameters no loss ever reaches."""


class LEGNN(nn.Module):
    """A graph neural network over a label graph.

    `H⁰ = encoder(X, Y)`; `H^{k+1} = dropout(σ(norm(layer(H^k) + residual(H^k))))`; `Ŷ = softmax(Z_N W_pred + b_pred)`,
    of which `forward` gives the logits. With `num_types` above 1, each node type has a
    projection of its own.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        settings: ModelSettings,
        label_features: Tensor | None = None,
        num_types: int = 1,
    ) -> None:
        super().__init__()
        enhanced = settings.labels == "enhanced"
        self.num_types = num_types
        self.scale = FeatureScale(settings.scale, in_channels, num_types)
        self.encoder = Encoder(
            num_types * in_channels,
            num_classes,
            settings.hidden,
            labels=settings.labels,
            label_features=settings.label_features,
            label_at_input=settings.label_at_input,
            input_dropout=settings.input_dropout,
            given=label_features,
        )
        self.layers = nn.ModuleList(
            Block(settings, settings.hidden, enhanced=enhanced, update_labels=k + 1 < settings.layers)
            for k in range(settings.layers)
        )
        self.classifier = Linear(settings.hidden, num_classes)

    def features(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Features:
        """Features as `forward` takes them, from those of the data `[n, F]`: scaled, and sparse where that pays.

        Their precision is that of everything the model makes of them. `node_type` `[n]` is needed where there are
        several types, each of which then has columns of its own among `[n, T F]`.
        """
        scaled = self.scale(x, node_type)
        if node_type is None:
            return compact(scaled, dtype)
        return TypedFeatures.from_rows(scaled, node_type, self.num_types, dtype)

    def dense_features(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """The same for some rows `[n, F]`, never sparse: asking whether it would pay takes longer than it saves."""
        scaled = self.scale(x, node_type)
        return dense(scaled if node_type is None else spread(scaled, node_type, self.num_types), dtype)

    def embed(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Representations:
        """Shapes: `x` `[M, F]` from `self.features` (once, not in every epoch); gives `[M, D]`, `[C, D]`."""
        nodes, labels = self._run(x, graph)
        return Representations(nodes[:, : self.encoder.channels], labels)

    def _run(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        nodes, labels = self.encoder(x, graph)
        for k, block in enumerate(self.layers):
            before = labels
            nodes, labels = block(nodes, labels, graph.layer(k))
        return nodes, before

    def forward(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """Shapes: `x` `[M, F]` from `self.features`; gives the logits `[M, C]`, in single precision at least.

        Over a sampled graph `x` holds its input nodes, and the logits are those of its seeds.
        """
        return self.classify(self._run(x, graph)[0])

    def classify(self, nodes: Tensor) -> Tensor:
        """The logits `[n, C]`, in single precision at least, from what the last layer leaves of `n` nodes."""
        logits = self.classifier(nodes)[:, : self.classifier.out_features]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def num_parameters(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


def predict_proba(logits: Tensor) -> Tensor:
    """`Ŷ = softmax(logits)` in single precision."""
    return torch.softmax(logits.float(), -1)
