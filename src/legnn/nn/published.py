"""Variants that the paper's published code, or the paper's text, has and the plain layers do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from legnn.config.model import AbsentLabel, ModelSettings, PublishedSettings
from legnn.graph.label_graph import LabelGraph
from legnn.nn.attention_messages import LabelAttention
from legnn.nn.gat import COLUMNS, GAT, head_scores, pad_rows, score_rows
from legnn.nn.layer import LayerOptions, channels_per_head, glorot, glorot_linear, linear, unsqueeze_as
from legnn.nn.lifting import Lift, MakeConvolution
from legnn.nn.normalization import LabelScales, Normalization
from legnn.ops.types import Scales


@dataclass(frozen=True)
class PublishedNormalization(Normalization):
    """A `Normalization` in which the neighbors of a node weigh `node_weight`, and its label 1.

    The mean of a node is `(w m_N + m_L) / (w [it has neighbors] + [it shows a label])` with `w = node_weight`. With
    `absent_label="zero"` the denominator is `w + 1` for every node.
    """

    node_weight: float = 1.0
    absent_label: AbsentLabel = "skip"
    scaled_scores: bool = False
    """Attention: whether the scores of sources are multiplied by `d_j^source`, as the messages are."""

    def relation_weights(self, has_neighbors: Tensor, shows: Tensor) -> tuple[Tensor, Tensor]:
        """As in `Normalization`, with the weight of the neighbors."""
        if self.absent_label == "zero":
            mean = torch.full_like(shows, 1 / (self.node_weight + 1))
        else:
            total = self.node_weight * has_neighbors + shows
            mean = torch.where(total == 0, 1.0, total).reciprocal()
        return self.node_weight * mean, mean

    def compute_scales(self, graph: LabelGraph, dtype: torch.dtype, *, enhanced: bool) -> tuple[Scales, LabelScales]:
        """As in `Normalization`, with factors of the scores."""
        nodes, labels = super().compute_scales(graph, dtype, enhanced=enhanced)
        if self.scaled_scores:
            nodes = nodes._replace(score=nodes.source, scales_label_scores=enhanced and self.kind == "joint")
        return nodes, labels


def published_normalization(normalization: Normalization, settings: ModelSettings) -> Normalization:
    """`normalization` with the weights of the settings, if they differ from the plain ones."""
    variant = settings.published
    if variant.node_weight == 1 and variant.absent_label == "skip":
        return normalization
    return PublishedNormalization(
        **vars(normalization), node_weight=variant.node_weight, absent_label=variant.absent_label
    )


GAT_VARIANTS = (
    "target_attention", "attention_vectors", "target_map", "symmetric_norm", "scaled_scores", "node_weight",
    "absent_label",
)  # fmt: skip
"""Settings that only `PublishedGAT` reads."""


class PublishedGAT(GAT):
    """`GAT` with variants; `dropout` has a draw of its own for the scores of targets.

    `target_attention=False` drops `t`. `attention_vectors="shared"` has one vector `a_φ` in the place of both `s_φ` and
    `t_φ`. With `target_map` the score of a target is `t_φ · B_φ h_i`, with a matrix `B_φ` of its own. `symmetric_norm`
    sends `h_j / √d_j` and receives `√d_i Σ …`, which makes uniform attention equal GCN; with `scaled_scores` the score
    of a source is that of `W h_j / √d_j`. For `node_weight` and `absent_label` see `PublishedNormalization`.

    Args:
        variant: these settings.
        options: see `GAT` and `LabelLayer`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        variant: PublishedSettings,
        *,
        heads: int = 1,
        negative_slope: float = 0.2,
        label_edges: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            in_channels, out_channels, heads=heads, negative_slope=negative_slope, label_edges=label_edges, **options
        )
        power = 0.5 if variant.symmetric_norm else 0.0
        self.normalization = PublishedNormalization(
            self.normalize, target=power, source=-power, is_softmax=True, node_weight=variant.node_weight,
            absent_label=variant.absent_label, scaled_scores=variant.scaled_scores,
        )  # fmt: skip
        self.attention = self.attention._replace(use_target_score=variant.target_attention)
        self.is_shared = variant.attention_vectors == "shared"
        scores_labels = self.update_labels and variant.target_attention
        if self.is_shared or not variant.target_attention:
            self.target = self.label_target = None
        if self.is_shared and scores_labels and self.label_source is None:
            self.label_source = glorot(heads, channels_per_head(out_channels, heads))  # a_L
        has_map = variant.target_map and variant.target_attention
        self.target_map = glorot_linear(in_channels, out_channels) if has_map else None  # B_N
        self.label_target_map = (
            glorot_linear(in_channels, out_channels) if variant.target_map and scores_labels else None
        )  # B_L

    def target_vectors(self) -> tuple[Tensor | None, Tensor | None]:
        """`t_N` and `t_L`, None where there is no score of a target."""
        if not self.is_shared or not self.attention.use_target_score:
            return self.target, self.label_target
        return self.source, self.label_source if self.update_labels else None

    def values_and_scores(self, x: Tensor, num_targets: int) -> Tensor:
        """`W_N h`, `s_N · W_N h` and `t_N · W_N h` (or `t_N · B_N h`) side by side."""
        rows, dropped = self._score_rows(), self.drop(x)
        if dropped is x or len(rows) == 1:
            return linear(dropped, pad_rows(torch.cat([self.node.weight, *rows])))
        source_rows, target_rows = rows
        # targets have a draw of their own, and with it a product of their own
        sent = linear(dropped, torch.cat([self.node.weight, source_rows]))
        target = linear(self.drop(x[:num_targets]), target_rows)
        both = torch.cat([sent, F.pad(target, (0, 0, 0, x.size(0) - num_targets))], 1)
        return F.pad(both, (0, -both.size(1) % COLUMNS))

    def label_attention(self, labels: Tensor | None) -> LabelAttention | None:
        """`H_L W_L`, `s_L · H_L W_L` and `t_L · H_L W_L` (or `t_L · H_L B_L`)."""
        if labels is None or self.label is None:
            return None
        dropped = self.drop(labels)
        values = self.label(dropped)
        by_head = of_targets = self.split_heads(values, 1)
        target_vectors = self.target_vectors()[1]
        if target_vectors is not None and (dropped is not labels or self.label_target_map is not None):
            target_map = self.label if self.label_target_map is None else self.label_target_map
            of_targets = self.split_heads(target_map(self.drop(labels)), 1)
        return LabelAttention(values, head_scores(by_head, self.label_source), head_scores(of_targets, target_vectors))

    def _score_rows(self) -> list[Tensor]:
        """`s_N W_N` and `t_N W_N` (or `t_N B_N`) `[heads, in]`, the latter where there is a score of a target."""
        by_head = self.split_heads(self.node.weight, 0)
        target_vectors = self.target_vectors()[0]
        if target_vectors is None:
            return score_rows([self.source], by_head)
        if self.target_map is None:
            return score_rows([self.source, target_vectors], by_head)
        of_targets = self.split_heads(self.target_map.weight, 0)
        return score_rows([self.source], by_head) + score_rows([target_vectors], of_targets)


class PublishedLift(Lift):
    """`Lift` with a mean in which the neighbors of a node weigh `node_weight`, see `PublishedNormalization`."""

    def __init__(
        self, make: MakeConvolution, in_channels: int, out_channels: int, *, node_weight: float = 1.0,
        absent_label: AbsentLabel = "skip", **options: Unpack[LayerOptions],
    ) -> None:  # fmt: skip
        super().__init__(make, in_channels, out_channels, **options)
        self.node_weight, self.absent_label = node_weight, absent_label

    def mean(self, nodes: Tensor, from_labels: Tensor, shows: Tensor) -> Tensor:
        """As in `Lift`, with the weight of the neighbors."""
        w, shows = self.node_weight, unsqueeze_as(shows, nodes)
        return (w * nodes + shows * from_labels) / (w + (1 if self.absent_label == "zero" else shows))


def published_lift(make: MakeConvolution, channels: int, settings: ModelSettings, options: LayerOptions) -> Lift:
    """A lifted convolution with the weights of the settings, if they differ from the plain ones."""
    variant = settings.published
    if variant.node_weight == 1 and variant.absent_label == "skip":
        return Lift(make, channels, channels, **options)
    return PublishedLift(
        make, channels, channels, node_weight=variant.node_weight, absent_label=variant.absent_label, **options
    )
