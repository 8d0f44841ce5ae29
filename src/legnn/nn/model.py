"""The model: `encoder → layers → classifier`, for every backbone and every label usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.nn.backbones import BACKBONES, LayerSpec
from legnn.nn.base import DataShape, FeatureModel
from legnn.nn.block import Block
from legnn.nn.encoder import Encoder
from legnn.nn.features import Features
from legnn.nn.initialization import initialize_as_published
from legnn.nn.layer import Linear, Nodes, to_logits
from legnn.nn.padding import ChannelPadding, PaddedLayerNorm
from legnn.ops.norm_act_dropout import drop

FEW_COLUMNS = 3
"""Times as many channels as columns of features and labels from which the first layer reads factors."""


class Representations(NamedTuple):
    """The output of the last layer."""

    nodes: Tensor
    """`Z_N` `[M, D]`."""
    labels: Tensor | None
    """`[C, D]`: the labels as the last layer read them; None where labels are not nodes. The paper's `Z_L` would be one
    more step, whose parameters no loss ever reaches."""


class _Parts(nn.Module):
    """The parts of a model, of the width in its settings."""

    def __init__(self, settings: ModelSettings, data: DataShape, in_channels: int) -> None:
        super().__init__()
        self.encoder = Encoder(in_channels, data.classes, settings, data.label_features)
        self.blocks = [
            Block(LayerSpec(settings, k < settings.layers, k, data.types, data.relations))
            for k in range(1, settings.layers + 1)
        ]
        self.layers = nn.ModuleList(self.blocks)
        self.classifier = Linear(settings.hidden, data.classes)


class LEGNN(FeatureModel):
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
        relations: Sequence[tuple[int, int]] = (),
    ) -> None:
        data = DataShape(in_channels, num_classes, num_types, tuple(relations), label_features=label_features)
        super().__init__(settings, data)
        if settings.backbone not in BACKBONES:
            raise InputError(f"{settings.backbone} has no layers; give a backbone from {', '.join(BACKBONES)}")
        enhanced = settings.labels == "enhanced"
        if enhanced and num_classes < 2 and settings.norm != "none" and settings.published.label_norm == "batch":
            raise InputError("label_norm = batch needs at least two classes: a batch of one label has no variance")
        self.uses_labels, self.has_label_nodes = settings.labels != "vanilla", enhanced
        self.uses_class_mean = enhanced and settings.label_features == "class-mean"
        self.num_stages, self.dropout = settings.layers, settings.dropout
        parts = _Parts(settings, data, self.in_channels)
        if settings.published.init == "published":
            initialize_as_published(parts.encoder, parts.blocks, self.num_types)
        self.padding, self.num_padding = ChannelPadding(settings), 0
        if self.padding.is_needed:
            narrow, parts = parts, _Parts(self.padding.settings, data, self.in_channels)
            for block in parts.blocks:
                if isinstance(block.label_norm, nn.LayerNorm):
                    block.label_norm = PaddedLayerNorm(self.padding.live(parts.classifier.in_features))
            self.num_padding = self.padding.copy(parts, narrow)
        self.encoder, self.layers, self.classifier = parts.encoder, parts.layers, parts.classifier
        self.channels = self.padding.settings.hidden
        self.uses_initial_state = any(block.layer.uses_initial_state for block in parts.blocks)
        # a penalty on all matrices would shrink their product; GCNII's authors have one on the first and the last
        # matrix, and another on those of the layers
        self.decayed = ("encoder.project", "classifier") if self.uses_initial_state else ("encoder.project",)
        is_linear = settings.published.layer_dropout == 0 and settings.residual != "identity"
        self.reads_products = is_linear and settings.backbone in ("gcn", "sage", "gat")
        self.supports_padding = all(block.layer.supports_padding for block in parts.blocks)

    def num_parameters(self) -> int:
        """The number of trained parameters."""
        return super().num_parameters() - self.num_padding

    def encode(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` and, label-enhanced, `H_L⁰` `[C, D]`; where every layer reads them, after a ReLU."""
        nodes, labels = self.encoder(x, graph)
        if not self.uses_initial_state:
            return nodes, labels
        return nodes.relu(), None if labels is None else labels.relu()

    def encode_all(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        """`encode`, with `H_N⁰` by its factors where the first layer has much less work with them."""
        is_narrow = FEW_COLUMNS * (self.in_channels + self.encoder.num_classes) <= self.channels
        if not self.reads_products or not is_narrow or not isinstance(x, Tensor) or not isinstance(graph, LabelGraph):
            return self.encode(x, graph)
        nodes, labels = self.encoder.factors(x, graph)
        return cast(Tensor, nodes), labels

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H_N^{k+1}` and `H_L^{k+1}` from `H_N^k` and `H_L^k`; the last layer gives no labels."""
        if initial is not None and k == 0:
            # later layers read what this one reads undropped, so that it is dropped here
            nodes = drop(nodes, self.dropout, training=self.training)
            labels = None if labels is None else drop(labels, self.dropout, training=self.training)
        return self.layers[k](nodes, labels, block, initial)

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`, in single precision at least, from the output of the last layer for `n` nodes."""
        return to_logits(self.classifier(nodes))  # eq. 20: logits

    def embed(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Representations:
        """`Z_N` `[M, D]` and the labels `[C, D]`, for `x` from `prepare`."""
        nodes, labels = self.run_stages(x, graph)
        return Representations(self.unpad(nodes), None if labels is None else self.unpad(labels))

    def unpad(self, states: Tensor) -> Tensor:
        """The channels of the model `[n, D]` among those that are stored."""
        if not self.padding.is_needed:
            return states
        return states.index_select(1, self.padding.live(states.size(1)).to(states.device))
