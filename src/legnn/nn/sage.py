"""GraphSAGE (mean) over a label graph."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Linear, add_bias, typed_linear
from legnn.nn.message_passing import pass_linear_messages
from legnn.nn.normalization import AbsentLabel, Normalization, Normalize
from legnn.nn.products import product_and_pass
from legnn.ops import drop
from legnn.ops.product import run_labels_beside


class SAGE(nn.Module):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L + H_N R_N + b_N`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L + H_L R_L + b_L`.

    With `normalize="joint"` the hats are blocks of `D'^{-1} A'`: a mean over all edges of `A'`. With `"relation"` each
    block is a mean of its own, `D_r^{-1} A_r`, and a row is the mean of the blocks in which it has edges. On a weighted
    graph the means are weighted. `bias=False` leaves out `b_N` and `label_bias=False` `b_L`, which a batch norm would
    cancel. `node_weight` and `absent_label` are described in `Normalization`, `dropout` in `nn.layer`; `R_N` and `R_L`
    read their input undropped.
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
            normalize, target=-1.0, source=0.0, node_weight=node_weight, absent_label=absent_label
        )
        self.node = typed_linear(in_channels, out_channels)  # W_N
        self.root = Linear(in_channels, out_channels, bias=bias)  # R_N, b_N
        self.label = typed_linear(in_channels, out_channels) if self.enhanced else None  # W_L
        self.label_root = Linear(in_channels, out_channels, bias=label_bias) if self.update_labels else None  # R_L, b_L

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, in]`, `labels` `[C, in]` or None; returns `[M, out]`, `[C, out]` or None, see `nn.layer`."""
        from_labels = None
        if labels is not None and self.label is not None:
            from_labels = drop(labels, self.dropout, training=self.training), self.label.weight
        (root, x), label_root = run_labels_beside(
            labels,
            lambda: product_and_pass(x, self.root.weight, add, rows=graph.num_nodes),
            lambda: None if labels is None or self.label_root is None else self.label_root(labels),
        )
        root = add_bias(root, self.root.bias)
        x = drop(x, self.dropout, training=self.training)
        return pass_linear_messages(
            graph,
            x,
            self.node.weight,
            from_labels,
            root,
            self.normalization,
            update_labels=self.update_labels,
            add_to_labels=label_root,
        )
