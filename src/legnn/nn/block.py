"""A layer with residual, normalization, activation and dropout."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph
from legnn.nn.backbones import BACKBONES, LayerSpec
from legnn.nn.base import Nodes
from legnn.nn.layer import Linear, typed_linear
from legnn.nn.products import product_and_pass
from legnn.ops import apply_norm_act_dropout, drop, update_labels
from legnn.ops.product import run_labels_beside
from legnn.ops.rows import apply_norm


class Block(nn.Module):
    """`H' = dropout(relu(norm(layer(H) + residual(H))))`, for nodes and for labels.

    A layer with `activates = False` has its activation inside: no ReLU follows.
    """

    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        settings, channels = spec.settings, spec.channels
        self.layer = BACKBONES[settings.backbone](spec)
        self.dropout = settings.dropout
        self.residual = _residual(settings.residual, channels)
        self.norm = make_norm(settings.norm, channels)
        if spec.enhanced and spec.update_labels:
            # a handful of labels is no batch to take statistics of: by default they have a layer norm
            self.label_norm = None if self.norm is None else make_norm(settings.label_norm, channels)
            self.label_residual = _residual(settings.residual, channels)

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, first: Nodes | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, D]`, `labels` `[C, D]` or None; returns `[M, D]`, `[C, D]` or None, see `nn.layer`."""
        add: Tensor | None = None
        if isinstance(self.residual, Linear) and getattr(self.layer, "reads_by_products", False):
            add, x = product_and_pass(x, self.residual.weight, rows=graph.num_nodes)
        elif isinstance(self.residual, Linear):
            add = self.residual(x[: graph.num_nodes])
        elif self.residual is not None:
            add = x
        if first is None:
            x, new_labels = self.layer(x, labels, graph, add)
        else:
            x, new_labels = self.layer(x, labels, graph, add, first)
        if new_labels is None or labels is None:
            return self._norm_act_dropout(x, self.norm, graph.real), None
        return run_labels_beside(
            labels,
            lambda: self._norm_act_dropout(x, self.norm, graph.real),
            lambda: self._update_labels(new_labels, labels),
        )

    def _update_labels(self, new_labels: Tensor, labels: Tensor) -> Tensor:
        """`H_L'` `[C, D]` from what the layer gives, `new_labels`, and what it read."""
        residual = None if self.label_residual is None else self.label_residual(labels)
        channels = labels.size(1)
        if getattr(self.layer, "activates", True):
            return update_labels(new_labels, residual, self.label_norm, self.dropout, channels, training=self.training)
        new_labels = new_labels[:, :channels]
        if residual is not None:
            new_labels = new_labels + residual[:, :channels]
        return self._norm_act_dropout(new_labels, self.label_norm)

    def _norm_act_dropout(
        self, x: Tensor, norm: nn.BatchNorm1d | nn.LayerNorm | None, real: Tensor | None = None
    ) -> Tensor:
        if getattr(self.layer, "activates", True):
            return apply_norm_act_dropout(x, norm, self.dropout, training=self.training, real=real)
        return drop(x if norm is None else apply_norm(norm, x, real), self.dropout, training=self.training)


class NormActDropout(nn.Module):
    """`dropout(relu(norm(x)))`, as the settings say."""

    def __init__(self, settings: ModelSettings, channels: int) -> None:
        super().__init__()
        self.norm, self.dropout = make_norm(settings.norm, channels), settings.dropout

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, D]`, padded or not; returns as many columns."""
        return apply_norm_act_dropout(x, self.norm, self.dropout, training=self.training)


def make_norm(kind: str, channels: int) -> nn.BatchNorm1d | nn.LayerNorm | None:
    """The norm that the setting `norm` names, or None."""
    if kind == "batch":
        return nn.BatchNorm1d(channels)
    return nn.LayerNorm(channels) if kind == "layer" else None


def _residual(kind: str | None, channels: int) -> nn.Module | None:
    if kind == "linear":
        return typed_linear(channels, channels)
    return nn.Identity() if kind == "identity" else None
