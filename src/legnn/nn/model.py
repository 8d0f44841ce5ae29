"""The model: `encoder → layers → classifier`, for every backbone and every label usage."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn.backbones import BACKBONES
from legnn.nn.encoder import Encoder, FeatureScale
from legnn.nn.features import Features, TypedFeatures, compact, dense, spread
from legnn.nn.layer import Linear, typed_linear
from legnn.nn.product import product_and_pass
from legnn.ops import finish


class Representations(NamedTuple):
    """What the last layer leaves."""

    nodes: Tensor
    """`Z_N` `[M, D]`."""
    labels: Tensor | None
    """`[C, D]`: the labels as the last layer read them; None where labels are not nodes. The paper's `Z_L` would be one
    more step, whose parameters no loss ever reaches."""


class Block(nn.Module):
    """One layer and what follows it: residual, normalization, activation, dropout."""

    def __init__(self, settings: ModelSettings, channels: int, *, enhanced: bool, update_labels: bool) -> None:
        super().__init__()
        self.layer = BACKBONES[settings.backbone](settings, channels, enhanced, update_labels)
        self.dropout = settings.dropout or 0.0
        self.residual = _residual(settings.residual, channels)
        norms = {"none": None, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
        norm = norms[settings.norm or "none"]
        self.norm = None if norm is None else norm(channels)
        if enhanced and update_labels:
            # a handful of labels is no batch to take statistics of: theirs is a layer norm wherever there is a norm
            self.label_norm = None if norm is None else nn.LayerNorm(channels)
            self.label_residual = _residual(settings.residual, channels)

    def forward(self, x: Tensor, labels: Tensor | None, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, D]`, `labels` `[C, D]` or None; `[M, D]` and the labels come out, None after the last block.

        In a whole graph `N = M`; in a part of one the `M` nodes that receive are the first of the `N` that send.
        """
        add: Tensor | None = None
        if isinstance(self.residual, Linear) and getattr(self.layer, "reads_by_products", False):
            add, x = product_and_pass(x, self.residual.weight, rows=graph.num_nodes)
        elif isinstance(self.residual, Linear):
            add = self.residual(x[: graph.num_nodes])
        elif self.residual is not None:
            add = x
        x, new_labels = self.layer(x, labels, graph, add)
        x = finish(x, self.norm, self.dropout, training=self.training)
        if new_labels is None or labels is None:
            return x, None
        if self.label_residual is not None:
            new_labels = new_labels + self.label_residual(labels)[:, : new_labels.size(1)]
        return x, finish(new_labels, self.label_norm, self.dropout, training=self.training)


def _residual(kind: str | None, channels: int) -> nn.Module | None:
    if kind == "linear":
        return typed_linear(channels, channels)
    return nn.Identity() if kind == "identity" else None


class LEGNN(nn.Module):
    """A graph neural network over a label graph.

    `H⁰ = encoder(X, Y)`; `H^{k+1} = dropout(σ(norm(layer(H^k) + residual(H^k))))`; `Ŷ = softmax(Z_N W_pred + b_pred)`,
    of which `forward` gives the logits. Settings left open must have been chosen from the data first
    (`legnn.config.settings.resolve`). With `num_types` above 1, each node type has a projection of its own.
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
        if settings.hidden is None or settings.layers is None:
            raise InputError("hidden and layers of the model are not chosen yet; legnn.resolve(settings, data) does it")
        enhanced = settings.labels == "enhanced"
        self.num_types = num_types
        self.scale = FeatureScale(settings.scale or "none", in_channels, num_types)
        self.encoder = Encoder(
            num_types * in_channels,
            num_classes,
            settings.hidden,
            labels=settings.labels,
            label_features=settings.label_features,
            label_at_input=bool(settings.label_at_input),
            input_dropout=settings.input_dropout or 0.0,
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
