"""GAT over a label graph."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Linear, add_bias, channels_per_head, glorot, typed_linear
from legnn.nn.message_passing import LabelAttention, pass_attention_messages, send_beside
from legnn.nn.normalization import AbsentLabel, Normalization, Normalize
from legnn.nn.products import product
from legnn.nn.sum_first import attend_then_multiply, is_worth_summing_first
from legnn.ops import AttentionConfig, drop
from legnn.ops.runtime.padding import pad_columns, padded_width


class GAT(nn.Module):
    r"""`h_i' = Σ_j α_ij W_φ(j) h_j + b_φ(i)`, `α_ij = softmax_j LeakyReLU(s_φ(j) · W_φ(j) h_j + t_φ(i) · W_φ(i) h_i)`.

    `φ` is the type of a node, N or L: each type has its own matrix and its own attention vectors, `s` for a node as the
    source of a message and `t` as its target (the two halves of the paper's `a_φ`). Heads are concatenated.

    With `normalize="joint"` the softmax is over all edges of `A'`. With `"relation"` each block has a softmax of its
    own, and a row is the mean of the blocks in which it has edges (see `Normalization` for `node_weight` and
    `absent_label`). An edge of weight `w` counts as `w` edges.

    Args:
        target_attention: False drops `t`.
        attention_vectors: `"shared"` has one vector `a_φ` in the place of both `s_φ` and `t_φ`.
        target_map: the score of a target is `t_φ · B_φ h_i`, with a matrix `B_φ` of its own.
        symmetric_norm: sends `h_j / √d_j` and receives `√d_i Σ …`, which makes uniform attention equal GCN.
        scaled_scores: with `symmetric_norm`, the score of a source is that of `W h_j / √d_j`.
        label_edges: for graphs with label–label edges.
        bias, label_bias: False leaves out `b_N` or `b_L`, which a batch norm would cancel.
        dropout: of what the layer reads, see `nn.layer`.
    """

    reads_by_products = True
    takes_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        target_attention: bool = True,
        attention_vectors: Literal["separate", "shared"] = "separate",
        target_map: bool = False,
        symmetric_norm: bool = False,
        scaled_scores: bool = False,
        negative_slope: float = 0.2,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        node_weight: float = 1.0,
        absent_label: AbsentLabel = "skip",
        label_edges: bool = False,
        bias: bool = True,
        label_bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels, self.dropout = enhanced, enhanced and update_labels, dropout
        powers = {"target": 0.5, "source": -0.5} if symmetric_norm else {"target": 0.0, "source": 0.0}
        self.normalization = Normalization(
            normalize, **powers, is_softmax=True, scaled_scores=scaled_scores, node_weight=node_weight,
            absent_label=absent_label,
        )  # fmt: skip
        self.attention = AttentionConfig(out_channels, heads, target_attention, negative_slope)
        self.is_shared = attention_vectors == "shared"
        # in the relation from labels to nodes a softmax has one edge: without label–label edges nothing would train s_L
        compares_labels = normalize == "joint" or (label_edges and self.update_labels)
        # a softmax over one relation would cancel t_L · W_L h_i, were it not inside LeakyReLU
        scores_labels = self.update_labels and target_attention
        width = channels_per_head(out_channels, heads)

        def vectors(needed: bool) -> nn.Parameter | None:
            return glorot(heads, width) if needed else None

        def matrix(needed: bool) -> Linear | None:
            return typed_linear(in_channels, out_channels) if needed else None

        def zeros(needed: bool) -> nn.Parameter | None:
            return nn.Parameter(torch.zeros(out_channels)) if needed else None

        self.node = typed_linear(in_channels, out_channels)  # W_N
        self.bias = zeros(bias)  # b_N
        self.source = glorot(heads, width)  # s_N, or a_N
        self.target = vectors(target_attention and not self.is_shared)  # t_N
        self.label = matrix(self.enhanced)  # W_L
        self.label_source = vectors(
            self.enhanced and (compares_labels or (self.is_shared and scores_labels))
        )  # s_L, or a_L
        self.label_bias = zeros(self.update_labels and label_bias)  # b_L
        self.label_target = vectors(scores_labels and not self.is_shared)  # t_L
        self.target_map = matrix(target_map and target_attention)  # B_N
        self.label_target_map = matrix(target_map and scores_labels)  # B_L

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, in]`, `labels` `[C, in]` or None; returns `[M, out]`, `[C, out]` or None, see `nn.layer`."""
        is_dropped = self.training and self.dropout > 0
        if (
            not self.update_labels
            and not is_dropped
            and is_worth_summing_first(graph, x, self.attention, self.normalization)
        ):
            label_attention = self._label_attention(labels)
            rows = torch.cat(self._score_rows())
            nodes = attend_then_multiply(
                graph, x, self.node.weight, rows, label_attention, add, self.normalization, self.attention
            )
            return add_bias(nodes, self.bias), None
        values_and_scores, label_attention = send_beside(
            graph, labels, self.normalization,
            lambda: self._values_and_scores(x, graph.num_nodes), lambda: self._label_attention(labels),
        )  # fmt: skip
        nodes, new_labels = pass_attention_messages(
            graph, values_and_scores, label_attention, add, self.normalization, self.attention,
            update_labels=self.update_labels,
        )  # fmt: skip
        return add_bias(nodes, self.bias), new_labels

    def target_vectors(self) -> tuple[Tensor | None, Tensor | None]:
        """`t_N` and `t_L`, None where there is no score of a target."""
        if not self.is_shared or not self.attention.use_target_score:
            return self.target, self.label_target
        return self.source, self.label_source if self.update_labels else None

    def _values_and_scores(self, x: Tensor, num_targets: int) -> Tensor:
        """`W_N h`, `s_N · W_N h` and `t_N · W_N h` (or `t_N · B_N h`): values and scores are columns of one product."""
        score_rows, dropped = self._score_rows(), self._drop(x)
        if dropped is x or len(score_rows) == 1:
            return product(dropped, torch.cat([self.node.weight, *score_rows]))
        source_rows, target_rows = score_rows
        # targets have a draw of their own, and with it a product of their own
        sent = product(dropped, torch.cat([self.node.weight, source_rows]))
        sent = sent[:, : self.attention.channels + self.attention.heads]
        target = product(self._drop(x[:num_targets]), target_rows)[:, : self.attention.heads]
        both = torch.cat([sent, F.pad(target, (0, 0, 0, x.size(0) - num_targets))], 1)
        return pad_columns(both, padded_width(both.size(1), both))

    def _score_rows(self) -> list[Tensor]:
        """`s_N W_N` and `t_N W_N` (or `t_N B_N`) `[heads, in]`, the latter where there is a score of a target."""
        by_head = self._split_heads(self.node.weight, 0)
        target_vectors = self.target_vectors()[0]
        if target_vectors is None:
            return _score_rows([self.source], by_head)
        if self.target_map is None:
            return _score_rows([self.source, target_vectors], by_head)
        of_targets = self._split_heads(self.target_map.weight, 0)
        return _score_rows([self.source], by_head) + _score_rows([target_vectors], of_targets)

    def _label_attention(self, labels: Tensor | None) -> LabelAttention | None:
        """`H_L W_L`, `s_L · H_L W_L` and `t_L · H_L W_L` (or `t_L · H_L B_L`), and `b_L`."""
        if labels is None or self.label is None:
            return None
        dropped = self._drop(labels)
        values = self.label(dropped)[:, : self.attention.channels]
        by_head = of_targets = self._split_heads(values, 1)
        target_vectors = self.target_vectors()[1]
        if target_vectors is not None and (dropped is not labels or self.label_target_map is not None):
            target_map = self.label if self.label_target_map is None else self.label_target_map
            of_targets = self._split_heads(target_map(self._drop(labels))[:, : self.attention.channels], 1)
        target, source = _scores(of_targets, target_vectors), _scores(by_head, self.label_source)
        bias = None if self.label_bias is None else self.label_bias.expand(values.size(0), -1)
        return LabelAttention(values, source, target, bias)

    def _split_heads(self, values: Tensor, axis: int) -> Tensor:
        return values.unflatten(axis, (self.attention.heads, -1))

    def _drop(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout, training=self.training)


def _score_rows(vectors: list[Tensor], by_head: Tensor) -> list[Tensor]:
    """`a W` `[heads, in]` of each `a` `[heads, D]` for `W` `[heads, D, in]`, since `a · W h` is `(a W) h`."""
    return list((torch.stack(vectors, 1) @ by_head).unbind(1))


def _scores(by_head: Tensor, vectors: Tensor | None) -> Tensor | None:
    return None if vectors is None else (by_head * vectors.to(by_head.dtype)).sum(-1)
