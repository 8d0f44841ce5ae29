"""GCN over a label graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import add_bias, typed_linear
from legnn.nn.message_passing import pass_linear_messages
from legnn.nn.normalization import AbsentLabel, Normalization, Normalize
from legnn.ops import drop


class GCN(nn.Module):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L + b_N`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L + b_L`.

    With `normalize="joint"` the hats are blocks of `D'^{-1/2} A' D'^{-1/2}`, with degrees counted in `A'`. With
    `"relation"` each block is normalized by its own degrees, `D_r^{-1/2} A_r D_c^{-1/2}`, and a row is the mean of the
    blocks in which it has edges. Degrees are those of incoming edges, as in PyG's `GCNConv`; a node without any sends
    nothing. The layer adds no self-loops. `bias=False` leaves out `b_N`, `label_bias=False` `b_L`, which a batch norm
    would cancel. `node_weight` and `absent_label` are described in `Normalization`, `dropout` in `nn.layer`.
    """

    reads_by_products = True
    takes_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        node_weight: float = 1.0,
        absent_label: AbsentLabel = "skip",
        bias: bool = True,
        label_bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels, self.dropout = enhanced, enhanced and update_labels, dropout
        self.normalization = Normalization(
            normalize, target=-0.5, source=-0.5, zero_degree=0.0, node_weight=node_weight, absent_label=absent_label
        )
        self.node = typed_linear(in_channels, out_channels)  # W_N
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None  # b_N
        self.label = typed_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        has_label_bias = self.update_labels and label_bias
        self.label_bias = nn.Parameter(torch.zeros(out_channels)) if has_label_bias else None  # b_L

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, in]`, `labels` `[C, in]` or None; returns `[M, out]`, `[C, out]` or None, see `nn.layer`."""
        x = drop(x, self.dropout, training=self.training)
        from_labels = None
        if labels is not None and self.label is not None:
            from_labels = drop(labels, self.dropout, training=self.training), self.label.weight
        nodes, new_labels = pass_linear_messages(
            graph,
            x,
            self.node.weight,
            from_labels,
            add,
            self.normalization,
            update_labels=self.update_labels,
            add_to_labels=self.label_bias,
        )
        return add_bias(nodes, self.bias), new_labels
