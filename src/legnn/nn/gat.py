"""GAT over a label graph."""

from __future__ import annotations

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from legnn.graph.label_graph import LabelGraph
from legnn.nn.attention_messages import LabelAttention, pass_attention_messages
from legnn.nn.layer import (
    LabelLayer,
    LayerOptions,
    Nodes,
    add_bias,
    channels_per_head,
    glorot,
    glorot_linear,
    linear,
    zeros,
)
from legnn.nn.normalization import Normalization
from legnn.ops.types import AttentionConfig

COLUMNS = 8
"""Kernels read rows of values and scores that are a multiple of so many numbers."""


class GAT(LabelLayer):
    r"""`h_i' = Σ_j α_ij W_φ(j) h_j + b_φ(i)`, `α_ij = softmax_j LeakyReLU(s_φ(j) · W_φ(j) h_j + t_φ(i) · W_φ(i) h_i)`.

    `φ` is the type of a node, N or L: each type has its own matrix and its own attention vectors, `s` for a node as the
    source of a message and `t` as its target (the two halves of the paper's `a_φ`). Heads are concatenated.

    With `normalize="joint"` the softmax is over all edges of `A'`. With `"relation"` each block has a softmax of its
    own, and a row is the mean of the blocks in which it has edges. An edge of weight `w` counts as `w` edges. A softmax
    over sampled edges is a biased estimate of that over all edges, while the sums of `GCN` and `SAGE` are unbiased.

    Args:
        label_edges: for graphs with label–label edges.
        options: see `LabelLayer`.
    """

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        negative_slope: float = 0.2,
        label_edges: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_channels, out_channels, **options)
        self.normalization = Normalization(self.normalize, target=0.0, source=0.0, is_softmax=True)
        self.attention = AttentionConfig(out_channels, heads, True, negative_slope)
        # in the relation from labels to nodes a softmax has one edge: without label–label edges nothing would train s_L
        compares_labels = self.normalize == "joint" or (label_edges and self.update_labels)
        width = channels_per_head(out_channels, heads)

        def vectors(needed: bool) -> nn.Parameter | None:
            return glorot(heads, width) if needed else None

        self.node = glorot_linear(in_channels, out_channels)  # W_N
        self.bias = zeros(out_channels) if self.has_bias else None  # b_N
        self.source = glorot(heads, width)  # s_N
        self.target = vectors(True)  # t_N
        self.label = glorot_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        self.label_source = vectors(self.enhanced and compares_labels)  # s_L
        self.label_bias = zeros(out_channels) if self.has_label_bias else None  # b_L
        self.label_target = vectors(self.update_labels)  # t_L

    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """See `LabelLayer.forward`."""
        # eq. 13: message passing, with eq. 15: attention
        nodes, new_labels = pass_attention_messages(
            graph, self.values_and_scores(x, graph.num_nodes), self.label_attention(labels), residual,
            self.normalization, self.attention, update_labels=self.update_labels,
        )  # fmt: skip
        return add_bias(nodes, self.bias), None if new_labels is None else add_bias(new_labels, self.label_bias)

    def values_and_scores(self, x: Tensor, num_targets: int) -> Tensor:
        """`W_N h`, `s_N · W_N h` and `t_N · W_N h` side by side `[N, …]`: one product, since `s · W h` is `(s W) h`."""
        assert self.target is not None
        rows = score_rows([self.source, self.target], self.split_heads(self.node.weight, 0))
        return linear(self.drop(x), pad_rows(torch.cat([self.node.weight, *rows])))

    def label_attention(self, labels: Tensor | None) -> LabelAttention | None:
        """`H_L W_L`, `s_L · H_L W_L` and `t_L · H_L W_L`."""
        if labels is None or self.label is None:
            return None
        values = self.label(self.drop(labels))
        by_head = self.split_heads(values, 1)
        return LabelAttention(values, head_scores(by_head, self.label_source), head_scores(by_head, self.label_target))

    def split_heads(self, values: Tensor, axis: int) -> Tensor:
        """`values` with `axis` split into heads and the channels of each."""
        return values.unflatten(axis, (self.attention.heads, -1))


def score_rows(vectors: list[Tensor], by_head: Tensor) -> list[Tensor]:
    """`a W` `[heads, in]` of each `a` `[heads, D]`, for `W` `[heads, D, in]`."""
    return list((torch.stack(vectors, 1) @ by_head).unbind(1))


def head_scores(by_head: Tensor, vectors: Tensor | None) -> Tensor | None:
    """`a · v` `[n, heads]` of each `v` in `by_head` `[n, heads, D]`; None without vectors."""
    return None if vectors is None else (by_head * vectors.to(by_head.dtype)).sum(-1)


def pad_rows(weight: Tensor) -> Tensor:
    """`weight` `[out, in]` with rows of zeros up to a multiple of `COLUMNS`."""
    return F.pad(weight, (0, 0, 0, -weight.size(0) % COLUMNS))
