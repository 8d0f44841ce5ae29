"""GCN over a label graph."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import LabelLayer, LayerOptions, Nodes, add_bias, glorot_linear, zeros
from legnn.nn.message_passing import pass_linear_messages
from legnn.nn.normalization import Normalization


class GCN(LabelLayer):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L + b_N`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L + b_L`.

    With `normalize="joint"` the hats are blocks of `D'^{-1/2} A' D'^{-1/2}`, with degrees counted in `A'`. With
    `"relation"` each block is normalized by its own degrees, `D_r^{-1/2} A_r D_c^{-1/2}`, and a row is the mean of the
    blocks in which it has edges. Degrees are those of incoming edges, as in PyG's `GCNConv`; a node without any sends
    nothing. The layer adds no self-loops. Sums over sampled neighbors are unbiased. Options: see `LabelLayer`.
    """

    supports_padding = True

    def __init__(self, in_channels: int, out_channels: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(in_channels, out_channels, **options)
        self.normalization = Normalization(self.normalize, target=-0.5, source=-0.5, zero_degree=0.0)
        self.node = glorot_linear(in_channels, out_channels)  # W_N
        self.bias = zeros(out_channels) if self.has_bias else None  # b_N
        self.label = glorot_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        self.label_bias = zeros(out_channels) if self.has_label_bias else None  # b_L

    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """See `LabelLayer.forward`."""
        x = self.drop(x)
        from_labels = None if labels is None or self.label is None else self.label(self.drop(labels))  # H_L W_L
        # eq. 13: message passing
        nodes, new_labels = pass_linear_messages(
            graph, x, self.node.weight, from_labels, residual, self.normalization, update_labels=self.update_labels
        )
        return add_bias(nodes, self.bias), None if new_labels is None else add_bias(new_labels, self.label_bias)
