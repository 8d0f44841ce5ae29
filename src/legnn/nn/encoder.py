"""From features and shown labels to the input of the first layer: `H_N⁰` and `H_L⁰`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from legnn.config.model import LabelFeatures, ModelSettings
from legnn.errors import InputError
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.nn.features import Features, project
from legnn.nn.label_columns import project_columns
from legnn.nn.layer import column, glorot, trim, typed_linear
from legnn.nn.products import ProjectedNodes
from legnn.ops import add_labels_, class_sum, drop
from legnn.ops.augment import augment, augmented_weight, takes_columns
from legnn.ops.augment.reference import one_hot_labels
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.product import FEW_ROWS
from legnn.ops.runtime.streams import run_beside


def class_mean(graph: LabelGraph, x: Tensor) -> Tensor:
    """The mean of `x` `[M, F]` over the nodes that show each class, `[C, F]`; zero where none does."""
    total = class_sum(graph.to_labels, x)
    return total / column(graph.label_count.clamp(min=1), total)


class LabelEmbedding(nn.Module):
    """`H_L⁰ = dropout(E) P_L` `[C, D]`; of a one-hot `E`, dropout leaves out whole rows of `P_L`."""

    given: Tensor

    def __init__(
        self,
        kind: LabelFeatures,
        in_channels: int,
        num_classes: int,
        channels: int,
        given: Tensor | None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.kind, self.dropout = kind, dropout
        if kind == "one-hot":
            self.rows = glorot(num_classes, channels)
        elif kind == "class-mean":
            self.project = typed_linear(in_channels, channels)
        else:
            if given is None:
                raise InputError("label_features = given needs a matrix with a row for each class, and there is none")
            if given.dim() != 2 or given.size(0) != num_classes:
                raise InputError(
                    f"label features must have a row for each of the {num_classes} classes, got {list(given.shape)}"
                )
            self.register_buffer("given", given.float())
            self.project = typed_linear(given.size(1), channels)

    def forward(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """`[C, D]` for `x` `[M, F]`."""
        if self.kind == "one-hot":
            if not self.training or self.dropout == 0:
                return self.rows
            return self.rows * self._drop(self.rows.new_ones(self.rows.size(0), 1))
        if self.kind == "given":
            return self.project(self._drop(self.given))
        if isinstance(graph, SampledLabelGraph):
            if graph.class_mean is None:
                raise ValueError("label_features = class-mean needs the class means of the whole graph in a sample")
            return self.project(self._drop(graph.class_mean))
        # the mean is over shown nodes only: with a predicted node in it, its label would show its class
        return self.project(self._drop(class_mean(graph, x if isinstance(x, Tensor) else x.dense)))

    def _drop(self, features: Tensor) -> Tensor:
        return drop(features, self.dropout, training=self.training)


class _Labels(NamedTuple):
    """What a model begins with of the labels."""

    features: Tensor | None
    """`H_L⁰` `[C, D]`."""
    at_input: tuple[LabelEdges, Tensor] | None
    """What nodes that show a label have added."""


def _merge(nodes: Tensor, labels: _Labels) -> tuple[Tensor, Tensor | None]:
    """`H_N⁰` and `H_L⁰` from the projected features and the labels."""
    if labels.at_input is not None:
        edges, rows = labels.at_input
        nodes = add_labels_(edges, nodes, rows)
    return nodes, labels.features


class Encoder(nn.Module):
    """`H_N⁰ = Augment(X, Y) P_N` and, label-enhanced, `H_L⁰ = E P_L`.

    | usage | `Augment(X, Y)` |
    |---|---|
    | vanilla, enhanced | `X` |
    | concat | `X ‖ Y`, computed as `X P_1 + Y P_2` |
    | addition | `X + Y W_L`, with `W_L` `[C, F]`, computed as `X P_N + Y (W_L P_N)` |

    `Y` has the shown labels alone. With `label_at_input`, a label-enhanced model adds `Y H_L⁰` to `H_N⁰`: otherwise a
    label has traveled one hop less after `K` layers than with concat or addition. What `drop_labels` drops is dropped
    there, too.
    """

    def __init__(
        self, in_channels: int, num_classes: int, settings: ModelSettings, label_features: Tensor | None = None
    ) -> None:
        super().__init__()
        self.labels, self.label_at_input = settings.labels, settings.label_at_input
        self.channels, self.input_dropout = settings.hidden, settings.input_dropout
        self.project = typed_linear(in_channels, self.channels)
        if self.labels == "concat":
            self.label_rows = glorot(num_classes, self.channels)
        elif self.labels == "addition":
            self.label_rows = glorot(num_classes, in_channels)
        elif self.labels == "enhanced":
            dropout = self.input_dropout if settings.drop_labels else 0.0
            self.label_embedding = LabelEmbedding(
                settings.label_features, in_channels, num_classes, self.channels, label_features, dropout
            )

    def forward(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` and, label-enhanced, `H_L⁰` `[C, D]`, for `x` `[M, F]`."""

        def nodes() -> Tensor:
            return project(x, self.project, self.input_dropout, training=self.training)

        def labels() -> _Labels:
            return self._labels(x, graph)

        if not self.training or self.labels == "vanilla" or not isinstance(graph, LabelGraph):
            return _merge(nodes(), labels())
        if graph.num_shown == 0 or graph.num_classes > FEW_ROWS:
            return _merge(nodes(), labels())
        if isinstance(x, Tensor) and self.adds_labels and takes_columns(x, self.input_dropout):
            return self._project_columns(x, graph)
        return _merge(*run_beside(graph.adjacency.col, nodes, labels))

    def _project_columns(self, x: Tensor, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        """`forward` with `Y` as columns beside the features: `H_N⁰ = [dropout(X) ‖ Y] [P ‖ L]ᵀ`, one product."""
        weight = self.project.weight

        def labels() -> tuple[Tensor | None, Tensor, Tensor]:
            rows = trim(self.label_embedding(x, graph), self.channels) if self.labels == "enhanced" else None
            at_input = self._at_input(rows)
            assert at_input is not None
            at_input = trim(at_input, self.channels)
            with torch.no_grad():
                factor = augmented_weight(weight, at_input, x)
            return None if rows is None else rows.to(x.dtype), at_input, factor

        # the small launches that find the labels come first: beside the pass over the features each would wait for it
        columns, (rows, at_input, factor) = run_beside(
            x, lambda: augment(x, graph.at_input, self.input_dropout), labels
        )
        return project_columns(columns, factor, weight, at_input, graph.at_input, x.size(1)), rows

    def _labels(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> _Labels:
        labels = self.label_embedding(x, graph)[:, : self.channels].to(x.dtype) if self.labels == "enhanced" else None
        at_input = self._at_input(labels)
        if at_input is None:
            return _Labels(labels, None)
        at_input = at_input.to(x.dtype)
        return _Labels(labels, (graph.at_input, at_input))

    def factor(self, x: Tensor, graph: LabelGraph) -> tuple[ProjectedNodes, Tensor | None]:
        """`forward` with `H_N⁰` as its factors, for dense features: `[dropout(X) ‖ Y]` and `[P ‖ L]`."""
        columns, weight = drop(x, self.input_dropout, training=self.training), self.project.weight
        rows = self.label_embedding(x, graph) if self.labels == "enhanced" else None
        at_input = self._at_input(rows)
        if at_input is not None:
            columns = torch.cat([columns, one_hot_labels(graph.at_input, x.dtype)], 1)
            weight = torch.cat([weight, at_input.T], 1)
        return ProjectedNodes(columns, weight), None if rows is None else rows.to(x.dtype)

    @property
    def adds_labels(self) -> bool:
        """Whether nodes that show a label have something added."""
        return self.labels in ("concat", "addition") or (self.labels == "enhanced" and self.label_at_input)

    def _at_input(self, labels: Tensor | None) -> Tensor | None:
        """What nodes that show a label have added, `[C, D]`; None for nothing."""
        if self.labels == "concat":
            return self.label_rows
        if self.labels == "addition":
            return self.project(self.label_rows)
        return labels if self.label_at_input else None
