"""The model: `encoder → layers → classifier`, for every backbone and every label usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.nn.backbones import BACKBONES, REGISTERED, LayerSpec
from legnn.nn.base import DataShape
from legnn.nn.block import Block
from legnn.nn.encoder import Encoder
from legnn.nn.feature_model import FeatureModel
from legnn.nn.features import Features
from legnn.nn.initialization import initialize_as_published
from legnn.nn.layer import Linear, Nodes, to_logits
from legnn.ops.norm_act_dropout import drop


class Representations(NamedTuple):
    """The output of the last layer."""

    nodes: Tensor
    """`Z_N` `[M, D]`."""
    labels: Tensor | None
    """`[C, D]`: the labels as the last layer read them; None where labels are not nodes. The paper's `Z_L` would be one
    more step, whose parameters no loss ever reaches."""


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
        super().__init__(settings, DataShape(in_channels, num_classes, num_types))
        if settings.backbone not in BACKBONES:
            raise InputError(f"{settings.backbone} has no layers; give a backbone from {', '.join(BACKBONES)}")
        enhanced = settings.labels == "enhanced"
        if enhanced and num_classes < 2 and settings.norm != "none" and settings.label_norm == "batch":
            raise InputError("label_norm = batch needs at least two classes: a batch of one label has no variance")
        self.uses_labels, self.has_label_nodes = settings.labels != "vanilla", enhanced
        self.uses_class_mean = enhanced and settings.label_features == "class-mean"
        self.channels, self.num_stages = settings.hidden, settings.layers
        self.encoder = Encoder(self.in_channels, num_classes, settings, label_features)
        spec = LayerSpec(
            settings, settings.hidden, enhanced, update_labels=True, num_types=num_types, relations=tuple(relations)
        )
        specs = (spec._replace(depth=k, update_labels=k < settings.layers) for k in range(1, settings.layers + 1))
        blocks = [Block(spec) for spec in specs]
        self.layers = nn.ModuleList(blocks)
        self.uses_initial_state = any(block.layer.uses_initial_state for block in blocks)
        # a batch norm takes statistics of all nodes, and a layer of the caller's may
        self.has_row_stage = settings.norm != "batch" and settings.backbone not in REGISTERED
        self.supports_padding = all(block.layer.supports_padding for block in blocks)
        self.dropout = settings.dropout
        self.classifier = Linear(settings.hidden, num_classes)
        if settings.init == "published":
            initialize_as_published(self.encoder, self.layers, self.num_types)

    @property
    def decayed_module(self) -> nn.Module:
        """The projection of the features: a penalty on all matrices would shrink their product.

        GCNII's authors have one penalty on the first and the last matrix, and another on those of the layers.
        """
        return (
            nn.ModuleList([self.encoder.project, self.classifier]) if self.uses_initial_state else self.encoder.project
        )

    def encode(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` and, label-enhanced, `H_L⁰` `[C, D]`; where every layer reads them, after a ReLU."""
        nodes, labels = self.encoder(x, graph)
        if not self.uses_initial_state:
            return nodes, labels
        return nodes.relu(), None if labels is None else labels.relu()

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H_N^{k+1}` and `H_L^{k+1}` from `H_N^k` and `H_L^k`; the last layer gives no labels."""
        if initial is not None and k == 0:
            # later layers read what this one reads undropped, so that it is dropped here
            nodes = drop(nodes, self.dropout, training=self.training)
            labels = None if labels is None else drop(labels, self.dropout, training=self.training)
        return self.layers[k](nodes, labels, block, initial)

    def classify(self, nodes: Tensor) -> Tensor:
        """Logits `[n, C]`, in single precision at least, from the output of the last layer for `n` nodes."""
        return to_logits(self.classifier(nodes))  # eq. 19: logits

    def embed(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Representations:
        """`Z_N` `[M, D]` and the labels `[C, D]`, for `x` from `inputs`."""
        nodes, labels = self.run_stages(x, graph)
        return Representations(nodes, labels)
