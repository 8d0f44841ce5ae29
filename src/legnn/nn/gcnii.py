"""GCNII (Chen et al., 2020) over a label graph."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import LabelLayer, LayerOptions, Nodes, glorot_linear, linear, targets_of
from legnn.nn.message_passing import pass_messages
from legnn.nn.normalization import Normalization


class GCNII(LabelLayer):
    r"""`H_N' = Z_N ((1 - β) I + β W_N)`, `H_L' = Z_L ((1 - β) I + β W_L)`, where `Z = (1 - α) Â' H + α H⁰`:

    `Z_N = (1 - α) (Â H_N + Ŷ H_L) + α H_N⁰`, `Z_L = (1 - α) (Ŷᵀ H_N + Ŝ H_L) + α H_L⁰`.

    `H⁰` are the states before the first layer, `α` is `restart`, and `β` falls from layer to layer. The hats are
    those of `GCN`. Matrices belong to the type of the receiver, since a product with the identity in it follows the
    sum. There are no biases. Options: see `LabelLayer`.
    """

    uses_initial_state = True
    supports_padding = True

    def __init__(self, channels: int, *, restart: float, beta: float, **options: Unpack[LayerOptions]) -> None:
        super().__init__(channels, channels, **options)
        self.restart, self.beta = restart, beta
        self.normalization = Normalization(self.normalize, target=-0.5, source=-0.5, zero_degree=0.0)
        self.node = glorot_linear(channels, channels)  # W_N
        self.label = glorot_linear(channels, channels) if self.update_labels else None  # W_L

    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """See `LabelLayer.forward`."""
        if initial is None:
            raise InputError("initial must be the states before the first layer, which GCNII reads in every layer")
        x, labels = self.drop(x), None if labels is None else self.drop(labels)
        # eq. 13: message passing
        nodes, sums = pass_messages(graph, x, labels, None, self.normalization, update_labels=self.update_labels)
        nodes = linear(torch.lerp(nodes, targets_of(initial[0], graph), self.restart), self._map(self.node.weight))
        nodes = nodes if residual is None else nodes + targets_of(residual, graph)
        if sums is None or self.label is None or initial[1] is None:
            return nodes, None
        return nodes, linear(torch.lerp(sums, initial[1], self.restart), self._map(self.label.weight))

    def _map(self, weight: Tensor) -> Tensor:
        """`(1 - β) I + β W`."""
        identity = torch.eye(weight.size(0), dtype=weight.dtype, device=weight.device)
        return (1 - self.beta) * identity + self.beta * weight
