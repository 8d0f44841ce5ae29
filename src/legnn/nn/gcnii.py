"""GCNII (Chen et al., 2020) over a label graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.base import Nodes
from legnn.nn.layer import typed_linear
from legnn.nn.message_passing import pass_messages
from legnn.nn.normalization import AbsentLabel, Normalization, Normalize
from legnn.nn.products import product
from legnn.ops import drop
from legnn.ops.runtime.padding import pad_columns


class GCNII(nn.Module):
    r"""`H_N' = Z_N ((1 - β) I + β W_N)`, `H_L' = Z_L ((1 - β) I + β W_L)`, where `Z = (1 - α) Â' H + α H⁰`:

    `Z_N = (1 - α) (Â H_N + Ŷ H_L) + α H_N⁰`, `Z_L = (1 - α) (Ŷᵀ H_N + Ŝ H_L) + α H_L⁰`.

    `H⁰` are the states before the first layer, `α` is `restart`, and `β` falls from layer to layer. The hats are
    those of `GCN`. Matrices belong to the type of the receiver, since a product with the identity in it follows the
    sum. There are no biases. `node_weight` and `absent_label` are described in `Normalization`, `dropout` in
    `nn.layer`.
    """

    reads_first = True
    takes_padding = True

    def __init__(
        self,
        channels: int,
        *,
        restart: float,
        beta: float,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        node_weight: float = 1.0,
        absent_label: AbsentLabel = "skip",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.restart, self.beta, self.dropout = restart, beta, dropout
        self.update_labels = enhanced and update_labels
        self.normalization = Normalization(
            normalize,
            target=-0.5,
            source=-0.5,
            zero_degree=0.0,
            node_weight=node_weight,
            absent_label=absent_label,
            weight=1 - restart,
        )
        self.node = typed_linear(channels, channels)  # W_N
        self.label = typed_linear(channels, channels) if self.update_labels else None  # W_L

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None, first: Nodes
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[N, D]`, `labels` `[C, D]` or None; returns `[M, D]`, `[C, D]` or None, see `nn.layer`."""
        x = drop(x, self.dropout, training=self.training)
        if labels is not None:
            labels = pad_columns(drop(labels, self.dropout, training=self.training), x.size(1))
        nodes, sums = pass_messages(
            graph, x, labels, self.restart * first[0], self.normalization, update_labels=self.update_labels
        )
        add = None if add is None else add[: nodes.size(0)]
        nodes = product(nodes, self._with_identity(self.node.weight), add)
        if sums is None or self.label is None or first[1] is None:
            return nodes, None
        channels = self.label.in_features
        sums = sums[:, :channels] + self.restart * first[1]
        return nodes, product(sums, self._with_identity(self.label.weight))[:, :channels]

    def _with_identity(self, weight: Tensor) -> Tensor:
        """`(1 - β) I + β W`."""
        identity = torch.eye(weight.size(0), dtype=weight.dtype, device=weight.device)
        return (1 - self.beta) * identity + self.beta * weight
