"""From features and shown labels to the input of the first layer: `H_N⁰` and `H_L⁰`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.config.model import LabelFeatures, ModelSettings
from legnn.errors import InputError
from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.nn.features import Features, project
from legnn.nn.layer import Factors, check_states, glorot, glorot_linear
from legnn.nn.message_passing import class_mean
from legnn.ops.norm_act_dropout import drop
from legnn.ops.propagate import add_labels_


class LabelEmbedding(nn.Module):
    """`H_L⁰ = dropout(E) P_L` `[C, D]`; of a one-hot `E`, dropout leaves out whole rows of `P_L`."""

    features: Tensor

    def __init__(
        self,
        kind: LabelFeatures,
        in_channels: int,
        num_classes: int,
        channels: int,
        features: Tensor | None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.kind, self.dropout = kind, dropout
        if kind == "one-hot":
            self.rows = glorot(num_classes, channels)
        elif kind == "class-mean":
            self.project = glorot_linear(in_channels, channels)
        else:
            if features is None:
                raise InputError("label_features = given needs a matrix with a row for each class, and there is none")
            if features.dim() != 2 or features.size(0) != num_classes:
                raise InputError(
                    f"label features must have a row for each of the {num_classes} classes, got {list(features.shape)}"
                )
            self.register_buffer("features", features.float())
            self.project = glorot_linear(features.size(1), channels)

    def forward(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> Tensor:
        """`[C, D]` for `x` `[M, F]`."""
        if self.kind == "one-hot":
            if not self.training or self.dropout == 0:
                return self.rows
            return self.rows * self._drop(self.rows.new_ones(self.rows.size(0), 1))
        if self.kind == "given":
            return self.project(self._drop(self.features))
        if isinstance(graph, SampledLabelGraph):
            if graph.class_mean is None:
                raise ValueError("label_features = class-mean needs the class means of the whole graph in a sample")
            return self.project(self._drop(graph.class_mean))
        # the mean is over shown nodes only: with a predicted node in it, its label would show its class
        return self.project(self._drop(class_mean(graph, x if isinstance(x, Tensor) else x.dense)))

    def _drop(self, features: Tensor) -> Tensor:
        return drop(features, self.dropout, training=self.training)


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
        self.num_classes = num_classes
        self.labels, self.label_at_input = settings.labels, settings.label_at_input
        self.channels, self.input_dropout = settings.hidden, settings.input_dropout
        self.project = glorot_linear(in_channels, self.channels)
        if self.labels == "concat":
            self.label_rows = glorot(num_classes, self.channels)
        elif self.labels == "addition":
            self.label_rows = glorot(num_classes, in_channels)
        elif self.labels == "enhanced":
            dropout = self.input_dropout if settings.published.drop_labels else 0.0
            self.label_embedding = LabelEmbedding(
                settings.label_features, in_channels, num_classes, self.channels, label_features, dropout
            )

    def forward(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor, Tensor | None]:
        """`H_N⁰` `[M, D]` and, label-enhanced, `H_L⁰` `[C, D]`, for `x` `[M, F]`."""
        self._check(x, graph)
        # eq. 10: projection of features and labels
        nodes = project(x, self.project, self.input_dropout, training=self.training)
        labels, at_input = self._labels(x, graph)
        return nodes if at_input is None else add_labels_(graph.at_input, nodes, at_input.to(nodes.dtype)), labels

    def factors(self, x: Tensor, graph: LabelGraph) -> tuple[Factors, Tensor | None]:
        """`forward` with `H_N⁰` by its factors, `dropout(X) ‖ Y` and the matrices of both."""
        self._check(x, graph)
        columns, weight = drop(x, self.input_dropout, training=self.training), self.project.weight
        labels, at_input = self._labels(x, graph)
        if at_input is not None:
            one_hot = torch.eye(self.num_classes, dtype=x.dtype, device=x.device)
            columns = F.pad(columns, (0, self.num_classes))
            columns = add_labels_(graph.at_input, columns, F.pad(one_hot, (x.size(1), 0)))
            weight = torch.cat([weight, at_input.T.to(weight.dtype)], 1)
        return Factors(columns, weight), labels

    def _check(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> None:
        if not isinstance(graph, LabelGraph | SampledLabelGraph):
            raise InputError(f"graph must be a LabelGraph or a SampledLabelGraph, got {type(graph).__name__}")
        rows = graph.num_nodes if isinstance(graph, LabelGraph) else graph.nodes.numel()
        if isinstance(x, Tensor):
            check_states("x", x, rows, self.project.in_features)
        elif x.shape != (rows, self.project.in_features):
            raise InputError(f"x must have a row for each of the {rows} nodes of graph, got shape {list(x.shape)}")
        if self.labels != "vanilla" and graph.at_input.num_classes != self.num_classes:
            raise InputError(
                f"graph has {graph.at_input.num_classes} classes, and the model was made for {self.num_classes}"
            )

    def _labels(self, x: Features, graph: LabelGraph | SampledLabelGraph) -> tuple[Tensor | None, Tensor | None]:
        """`H_L⁰`, and what nodes that show a label have added, both `[C, D]`; None for nothing."""
        if self.labels == "concat":
            return None, self.label_rows
        if self.labels == "addition":
            return None, self.project(self.label_rows)
        labels = self.label_embedding(x, graph).to(x.dtype) if self.labels == "enhanced" else None
        return labels, labels if self.label_at_input else None
