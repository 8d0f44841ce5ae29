"""Perceptrons whose output is propagated over a label graph: APPNP and DAGNN."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.nn.base import DataShape, FeatureModel
from legnn.nn.block import NormActDropout
from legnn.nn.encoder import Encoder
from legnn.nn.features import Features
from legnn.nn.initialization import initialize_as_published
from legnn.nn.layer import Linear, Nodes, glorot_linear, targets_of, to_logits
from legnn.nn.message_passing import pass_messages
from legnn.nn.normalization import Normalization
from legnn.nn.published import published_normalization


class _Perceptron(nn.Module):
    """The matrices after the first: `H ← dropout(relu(norm(H))) W + b` for each of them."""

    def __init__(self, settings: ModelSettings, channels: int, classes: int) -> None:
        super().__init__()
        outs = [channels] * (settings.layers - 2) + [classes] if settings.layers > 1 else []
        self.acts = nn.ModuleList(NormActDropout(settings, channels) for _ in outs)
        # a batch norm, which follows all matrices but the last, would cancel the bias
        biases = [settings.bias and settings.norm != "batch" for _ in outs[1:]] + [settings.bias for _ in outs[:1]]
        self.matrices = nn.ModuleList(Linear(channels, out, bias=bias) for out, bias in zip(outs, biases, strict=True))

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, D]`; returns `[n, C]`."""
        for act, matrix in zip(self.acts, self.matrices, strict=True):
            x = matrix(act(x))
        return x


class Propagated(FeatureModel):
    """`Z_N⁰ = MLP_N(Augment(X, Y))` `[M, C]` and `Z_L⁰ = MLP_L(E)` `[C, C]`, propagated `hops` times over `A'`.

    A perceptron has `layers` matrices, the first of which is the encoder's. `Â'` is that of `GCN`. Steps have no
    parameters, and are computed in single precision at least: there are few columns.
    """

    decayed = ("encoder.project",)

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        enhanced = settings.labels == "enhanced"
        self.uses_labels, self.has_label_nodes = settings.labels != "vanilla", enhanced
        self.uses_class_mean = enhanced and settings.label_features == "class-mean"
        self.channels = self.classes = data.classes
        self.num_stages = settings.appnp.hops
        width = settings.hidden if settings.layers > 1 else data.classes
        self.encoder = Encoder(self.in_channels, data.classes, replace(settings, hidden=width), data.label_features)
        self.perceptron = _Perceptron(settings, width, data.classes)
        label_norm = settings.published.label_norm if settings.norm != "none" else "none"
        self.label_perceptron = (
            _Perceptron(replace(settings, norm=label_norm), width, data.classes) if enhanced else None
        )
        gcn = Normalization(settings.normalize, target=-0.5, source=-0.5, zero_degree=0.0)
        self.normalization = published_normalization(gcn, settings)
        if settings.published.init == "published":
            initialize_as_published(self.encoder, [], self.num_types)

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`Z_N⁰` and `Z_L⁰`."""
        nodes, labels = self.encoder(inputs, graph)
        nodes = self.perceptron(nodes)
        nodes = nodes.to(torch.promote_types(nodes.dtype, torch.float32))
        if labels is None or self.label_perceptron is None:
            return nodes, None
        return nodes, self.label_perceptron(labels).to(nodes.dtype)

    def propagate(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph) -> Nodes:
        """`Â Z_N + Ŷ Z_L` and `Ŷᵀ Z_N + Ŝ Z_L`; no labels in the last step."""
        is_last = k + 1 == self.num_stages
        return pass_messages(block, nodes, labels, None, self.normalization, update_labels=not is_last)


class APPNP(Propagated):
    """`Z^{k+1} = (1 - α) Â' Z^k + α Z⁰` (Gasteiger et al., 2019), `Z_N^K` are the logits; `α` is `restart`.

    The authors' code also drops entries of `Â` in every step; that is left out.
    """

    uses_initial_state = True

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.restart = settings.appnp.teleport

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`Z^{k+1}` from `Z^k` and `Z⁰`."""
        assert initial is not None
        nodes, labels = self.propagate(k, nodes, labels, block)
        nodes = torch.lerp(nodes, targets_of(initial[0], block), self.restart)
        if labels is None or initial[1] is None:
            return nodes, None
        return nodes, torch.lerp(labels, initial[1], self.restart)


class DAGNN(Propagated):
    """`Z^{k+1} = Â' Z^k` (Liu et al., 2020); `Σ_k sigmoid(z_k · s) z_k` are the logits of a node, `k` from 0 to `K`.

    The states of nodes are `Z_N^k` and, beside them, the sum so far.
    """

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        self.channels = 2 * data.classes
        self.gate = glorot_linear(data.classes, 1)  # s

    def encode(self, inputs: Features, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`Z_N⁰ ‖ sigmoid(Z_N⁰ s) Z_N⁰` and `Z_L⁰`."""
        nodes, labels = super().encode(inputs, graph)
        return torch.cat([nodes, self._gated(nodes)], 1), labels

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`Z^{k+1}` from `Z^k`, and the sum with its term."""
        total = nodes[: block.num_nodes, self.classes :]
        nodes, labels = self.propagate(k, nodes[:, : self.classes], labels, block)
        return torch.cat([nodes, total + self._gated(nodes)], 1), labels

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`: the sum."""
        return to_logits(nodes[:, self.classes :])

    def _gated(self, nodes: Tensor) -> Tensor:
        return torch.sigmoid(self.gate(nodes)) * nodes
