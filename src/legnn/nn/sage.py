"""GraphSAGE (mean) over a label graph."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import LabelLayer, LayerOptions, Linear, Nodes, glorot_linear, targets_of
from legnn.nn.message_passing import pass_linear_messages
from legnn.nn.normalization import Normalization


class SAGE(LabelLayer):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L + H_N R_N + b_N`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L + H_L R_L + b_L`.

    With `normalize="joint"` the hats are blocks of `D'^{-1} A'`: a mean over all edges of `A'`. With `"relation"` each
    block is a mean of its own, `D_r^{-1} A_r`, and a row is the mean of the blocks in which it has edges. On a weighted
    graph the means are weighted; over sampled neighbors they are unbiased. `R_N` and `R_L` read their input undropped.
    Options: see `LabelLayer`.
    """

    supports_padding = True

    def __init__(self, in_channels: int, out_channels: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(in_channels, out_channels, **options)
        self.normalization = Normalization(self.normalize, target=-1.0, source=0.0)
        self.node = glorot_linear(in_channels, out_channels)  # W_N
        self.root = Linear(in_channels, out_channels, bias=self.has_bias)  # R_N, b_N
        self.label = glorot_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        self.label_root = (
            Linear(in_channels, out_channels, bias=self.has_label_bias) if self.update_labels else None
        )  # R_L, b_L

    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """See `LabelLayer.forward`."""
        root = self.root(targets_of(x, graph))
        root = root if residual is None else root + targets_of(residual, graph)
        from_labels = None if labels is None or self.label is None else self.label(self.drop(labels))  # H_L W_L
        # eq. 13: message passing
        nodes, new_labels = pass_linear_messages(
            graph, self.drop(x), self.node.weight, from_labels, root, self.normalization,
            update_labels=self.update_labels,
        )  # fmt: skip
        if new_labels is None or labels is None or self.label_root is None:
            return nodes, None
        return nodes, new_labels + self.label_root(labels)
