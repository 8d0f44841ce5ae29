"""GAT over a label graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import add_bias, channels_per_head, glorot, typed_linear
from legnn.nn.message_passing import LabelAttention, pass_attention_messages
from legnn.nn.normalization import Normalization, Normalize
from legnn.nn.products import product
from legnn.ops import AttentionConfig


class GAT(nn.Module):
    r"""`h_i' = Σ_j α_ij W_φ(j) h_j + b_φ(i)`, `α_ij = softmax_j LeakyReLU(s_φ(j) · W_φ(j) h_j + t_φ(i) · W_φ(i) h_i)`.

    `φ` is the type of a node, N or L: each type has its own matrix and its own attention vectors, `s` for a node as the
    source of a message and `t` as its target (the two halves of the paper's `a_φ`). Heads are concatenated.

    With `normalize="joint"` the softmax is over all edges of `A'`. With `"relation"` each block has a softmax of its
    own, and a row is the mean of the blocks in which it has edges. An edge of weight `w` counts as `w` edges.

    `target_attention=False` drops `t`; `symmetric_norm=True` sends `h_j / √d_j` and receives `√d_i Σ …`, which makes
    uniform attention equal GCN. Both are the published code's settings for ogbn-arxiv. `label_edges` is for graphs
    with label–label edges. `bias=False` leaves out `b_N`, which a batch norm would cancel.
    """

    reads_by_products = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        target_attention: bool = True,
        symmetric_norm: bool = False,
        negative_slope: float = 0.2,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        label_edges: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels = enhanced, enhanced and update_labels
        powers = {"target": 0.5, "source": -0.5} if symmetric_norm else {"target": 0.0, "source": 0.0}
        self.normalization = Normalization(normalize, **powers, is_softmax=True)
        self.attention = AttentionConfig(out_channels, heads, target_attention, negative_slope)
        # in the relation from labels to nodes a softmax has one edge: without label–label edges nothing would train s_L
        compares_labels = normalize == "joint" or (label_edges and self.update_labels)

        def vectors(needed: bool) -> nn.Parameter | None:
            return glorot(heads, channels_per_head(out_channels, heads)) if needed else None

        self.node = typed_linear(in_channels, out_channels)  # W_N
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None  # b_N
        self.source = vectors(True)  # s_N
        self.target = vectors(target_attention)  # t_N
        self.label = typed_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        self.label_source = vectors(self.enhanced and compares_labels)  # s_L
        self.label_bias = nn.Parameter(torch.zeros(out_channels)) if self.update_labels else None  # b_L
        # a softmax over one relation would cancel t_L · W_L h_i, were it not inside LeakyReLU
        self.label_target = vectors(self.update_labels and target_attention)  # t_L

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, in]`, `labels` `[C, in]` or None; returns `[M, out]`, `[C, out]` or None, see `nn.layer`."""
        nodes, new_labels = pass_attention_messages(
            graph, product(x, self._node_weight()), self._label_attention(labels), add, self.normalization,
            self.attention, update_labels=self.update_labels,
        )  # fmt: skip
        nodes = add_bias(nodes, self.bias)
        return nodes, None if new_labels is None else add_bias(new_labels, self.label_bias)

    def _node_weight(self) -> Tensor:
        """`W_N`, and below it `s_N W_N` and `t_N W_N`: values and scores are columns of one product."""
        weight = self.node.weight
        by_head = weight.unflatten(0, (self.attention.heads, -1))
        vectors = [vector for vector in (self.source, self.target) if vector is not None]
        return torch.cat([weight, *(torch.einsum("hd,hdi->hi", vector, by_head) for vector in vectors)])

    def _label_attention(self, labels: Tensor | None) -> LabelAttention | None:
        """`H_L W_L`, `s_L · H_L W_L` and `t_L · H_L W_L`."""
        if labels is None or self.label is None:
            return None
        values = self.label(labels)[:, : self.attention.channels]
        by_head = values.unflatten(1, (self.attention.heads, -1))
        target, source = (
            None if vector is None else (by_head * vector.to(values.dtype)).sum(-1)
            for vector in (self.label_target, self.label_source)
        )
        return LabelAttention(values, source, target)
