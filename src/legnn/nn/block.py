"""A layer with residual, normalization, activation and dropout."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.nn.backbones import BACKBONES, LayerSpec
from legnn.nn.layer import LabelLayer, Nodes, glorot_linear, targets_of
from legnn.nn.padding import PaddedLayerNorm
from legnn.ops.norm_act_dropout import apply_norm_act_dropout, drop
from legnn.ops.rows import Norm, apply_norm


class Block(nn.Module):
    """`H' = dropout(relu(norm(layer(H) + residual(H))))`, for nodes and for labels.

    A layer with `activates = False` has its activation inside: no ReLU follows.
    """

    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        settings, channels = spec.settings, spec.channels
        self.layer = BACKBONES[settings.backbone](spec)
        if not isinstance(self.layer, LabelLayer):
            raise InputError(
                f"backbone = {settings.backbone!r} must make a LabelLayer, got {type(self.layer).__name__}; register a "
                "convolution of PyG by `lifted`"
            )
        self.dropout = settings.dropout
        self.residual = _residual(settings.residual, channels)
        self.norm = make_norm(settings.norm, channels)
        self.label_norm: Norm | None = None
        self.label_residual: nn.Module | None = None
        if spec.enhanced and spec.update_labels:
            # a handful of labels is no batch to take statistics of: by default they have a layer norm
            self.label_norm = None if self.norm is None else make_norm(settings.published.label_norm, channels)
            self.label_residual = _residual(settings.residual, channels)

    def forward(self, x: Tensor, labels: Tensor | None, graph: LabelGraph, initial: Nodes | None = None) -> Nodes:
        """Shapes: `x` `[N, D]`, `labels` `[C, D]` or None; returns `[M, D]`, `[C, D]` or None."""
        residual = None if self.residual is None else self.residual(targets_of(x, graph))
        nodes, new_labels = self.layer(x, labels, graph, residual, initial)
        if new_labels is not None and self.label_residual is not None:
            new_labels = new_labels + self.label_residual(labels)
        nodes = self._norm_act_dropout(nodes, self.norm, graph.valid_mask)
        return nodes, None if new_labels is None else self._norm_act_dropout(new_labels, self.label_norm)

    def _norm_act_dropout(self, x: Tensor, norm: Norm | None, valid_mask: Tensor | None = None) -> Tensor:
        if isinstance(norm, PaddedLayerNorm):
            x, norm = norm(x), None
        if self.layer.activates:
            return apply_norm_act_dropout(x, norm, self.dropout, training=self.training, valid_mask=valid_mask)
        return drop(x if norm is None else apply_norm(norm, x, valid_mask), self.dropout, training=self.training)


class NormActDropout(nn.Module):
    """`dropout(relu(norm(x)))`, as the settings say."""

    def __init__(self, settings: ModelSettings, channels: int) -> None:
        super().__init__()
        self.norm, self.dropout = make_norm(settings.norm, channels), settings.dropout

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, D]`; returns the same."""
        return apply_norm_act_dropout(x, self.norm, self.dropout, training=self.training)


def make_norm(kind: str, channels: int) -> Norm | None:
    """The norm that the setting `norm` names, or None."""
    if kind == "batch":
        return nn.BatchNorm1d(channels)
    return nn.LayerNorm(channels) if kind == "layer" else None


def _residual(kind: str | None, channels: int) -> nn.Module | None:
    if kind == "linear":
        return glorot_linear(channels, channels)
    return nn.Identity() if kind == "identity" else None
