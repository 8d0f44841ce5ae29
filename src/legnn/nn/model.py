"""The model: `encoder → layers → classifier`, for every backbone and every label usage."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn.base import StagedModel
from legnn.nn.block import Block
from legnn.nn.encoder import Encoder, FeatureScale
from legnn.nn.features import Features, TypedFeatures, compact, dense, spread
from legnn.nn.initialization import initialize_as_published
from legnn.nn.layer import Linear


class Representations(NamedTuple):
    """The output of the last layer."""

    nodes: Tensor
    """`Z_N` `[M, D]`."""
    labels: Tensor | None
    """`[C, D]`: the labels as the last layer read them; None where labels are not nodes. The paper's `Z_L` would be one
    more step, whose parameters no loss ever reaches."""


class LEGNN(StagedModel):
    """A graph neural network over a label graph.

    `H⁰ = encoder(X, Y)`; `H^{k+1} = dropout(σ(norm(layer(H^k) + residual(H^k))))`; `Ŷ = softmax(Z_N W_pred + b_pred)`,
    of which `forward` gives the logits. With `num_types` above 1, each node type has a projection of its own, unless
    the settings say `shared_projection`.
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
        if enhanced and num_classes < 2 and settings.norm != "none" and settings.label_norm == "batch":
            raise InputError("label_norm = batch needs at least two classes: a batch of one label has no variance")
        self.uses_labels, self.has_label_nodes = settings.labels != "vanilla", enhanced
        self.uses_class_mean = enhanced and settings.label_features == "class-mean"
        # the columns of the types are side by side, or one above the other
        self.num_types = 1 if settings.shared_projection else num_types
        self.in_channels = self.num_types * in_channels
        self.channels, self.num_stages = settings.hidden, settings.layers
        self.scale = FeatureScale(settings.scale, in_channels, num_types)
        self.encoder = Encoder(self.in_channels, num_classes, settings, label_features)
        self.layers = nn.ModuleList(
            Block(settings, settings.hidden, enhanced=enhanced, update_labels=k + 1 < settings.layers)
            for k in range(settings.layers)
        )
        self.classifier = Linear(settings.hidden, num_classes)
        if settings.init == "published":
            initialize_as_published(self.encoder, self.layers, self.num_types)

    def fit_inputs(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Computes the statistics of the features `[M, F]` that `inputs` scales by."""
        self.scale.fit(x, node_type)

    def inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Features:
        """Features `[n, F]` in the form that `forward` takes: scaled, and sparse where that is faster.

        The model computes in `dtype`. With several node types, each of `node_type` `[n]` has columns of its own among
        `[n, T F]`, unless they share a projection.
        """
        scaled = self.scale(x, node_type)
        if node_type is None or self.num_types == 1:
            return compact(scaled, dtype)
        return TypedFeatures.from_rows(scaled, node_type, self.num_types, dtype)

    def batch_inputs(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> Tensor:
        """The same for some rows `[n, F]`, never sparse: testing whether that is faster takes longer than it saves."""
        scaled = self.scale(x, node_type)
        if node_type is not None and self.num_types > 1:
            scaled = spread(scaled, node_type, self.num_types)
        return dense(scaled, dtype)

    def encode(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` and, label-enhanced, `H_L⁰` `[C, D]`."""
        return self.encoder(x, graph)

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        """`H_N^{k+1}` and `H_L^{k+1}` from `H_N^k` and `H_L^k`; the last layer gives no labels."""
        return self.layers[k](nodes, labels, graph)

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`, in single precision at least, from the output of the last layer for `n` nodes."""
        logits = self.classifier(nodes)[:, : self.classifier.out_features]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def embed(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Representations:
        """`Z_N` `[M, D]` and the labels `[C, D]`, for `x` from `inputs`."""
        nodes, labels = self._embed(x, graph)
        return Representations(nodes[:, : self.channels], labels)

    def _embed(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        nodes, labels = self.encode(x, graph)
        for k in range(self.num_stages):
            before = labels
            nodes, labels = self.stage(k, nodes, labels, graph.layer(k))
        return nodes, before

    def forward(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """Logits `[M, C]`, in single precision at least, for `x` from `inputs`.

        Over a sampled graph, `x` are the features of its input nodes, and the logits are those of its seeds.
        """
        return self.classify(self._embed(x, graph)[0])

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Parameters for an optimizer, with `weight_decay` on the projection of the features."""
        return decay_first(self, self.encoder.project, weight_decay)


def decay_first(model: nn.Module, first: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups of `model` with `weight_decay` on `first` alone.

    As in the published GCN, the penalty is on the first matrix: on all of them it shrinks their product.
    """
    mine = set(first.parameters())
    rest = [parameter for parameter in model.parameters() if parameter not in mine]
    return [{"params": list(first.parameters()), "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
