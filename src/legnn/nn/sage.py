"""GraphSAGE (mean) over a label graph."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Linear, add_bias, typed_linear
from legnn.nn.message_passing import pass_linear_messages
from legnn.nn.normalization import Normalization, Normalize
from legnn.nn.products import product_and_pass


class SAGE(nn.Module):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L + H_N R_N + b_N`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L + H_L R_L + b_L`.

    With `normalize="joint"` the hats are blocks of `D'^{-1} A'`: a mean over all edges of `A'`. With `"relation"` each
    block is a mean of its own, `D_r^{-1} A_r`, and a row is the mean of the blocks in which it has edges. On a weighted
    graph the means are weighted. `bias=False` leaves out `b_N`, which a batch norm would cancel.
    """

    reads_by_products = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels = enhanced, enhanced and update_labels
        self.normalization = Normalization(normalize, target=-1.0, source=0.0)
        self.node = typed_linear(in_channels, out_channels)  # W_N
        self.root = Linear(in_channels, out_channels, bias=bias)  # R_N, b_N
        self.label = typed_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        self.label_root = Linear(in_channels, out_channels) if self.update_labels else None  # R_L, b_L

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, in]`, `labels` `[C, in]` or None; returns `[M, out]`, `[C, out]` or None, see `nn.layer`."""
        label_values = None if labels is None or self.label is None else self.label(labels)
        root, x = product_and_pass(x, self.root.weight, add, rows=graph.num_nodes)
        root = add_bias(root, self.root.bias)
        nodes, new_labels = pass_linear_messages(
            graph, x, self.node.weight, label_values, root, self.normalization, update_labels=self.update_labels
        )
        if new_labels is None or self.label_root is None:
            return nodes, None
        return nodes, new_labels + self.label_root(labels)[:, : new_labels.size(1)]
