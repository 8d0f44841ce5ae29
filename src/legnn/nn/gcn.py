"""GCN over a label graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Normalize, column, inverse_sqrt, typed_linear
from legnn.ops import class_sum, label_gather, neighbor_sum


class GCN(nn.Module):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L`, each plus a bias.

    With `normalize="joint"` the hats are blocks of `D'^{-1/2} A' D'^{-1/2}`, the degrees counted in `A'`. With
    `"relation"` each block is normalized by its own degrees, `D_r^{-1/2} A_r D_c^{-1/2}`, and the blocks that really
    come in at a row are averaged. Degrees are those of incoming edges, as in PyG's `GCNConv`. Self-loops are the
    graph's affair, not the layer's.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels, self.normalize = enhanced, enhanced and update_labels, normalize
        self.node = typed_linear(in_channels, out_channels)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        if self.enhanced:
            self.label = typed_linear(in_channels, out_channels)
        if self.update_labels:
            self.label_bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, labels: Tensor | None, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[M, in]`, `labels` `[C, in]` or None; gives `[M, out]`, `[C, out]` or None."""
        from_nodes = self.node(x)
        if labels is None or not self.enhanced:
            scale = inverse_sqrt(graph.adjacency.degree, x)
            return scale * neighbor_sum(graph.adjacency, scale * from_nodes) + self.bias, None
        from_labels = self.label(labels)
        if self.normalize == "joint":
            nodes, new_labels = self._joint(from_nodes, from_labels, graph)
        else:
            nodes, new_labels = self._relation(from_nodes, from_labels, graph)
        return nodes + self.bias, None if new_labels is None else new_labels + self.label_bias

    def _joint(self, from_nodes: Tensor, from_labels: Tensor, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        node_scale = inverse_sqrt(graph.node_degree, from_nodes)
        label_scale = inverse_sqrt(graph.label_degree, from_nodes)
        sent, sent_by_labels = node_scale * from_nodes, label_scale * from_labels
        received = neighbor_sum(graph.adjacency, sent)
        nodes = node_scale * received.index_add(0, graph.shown, label_gather(sent_by_labels, graph.y))
        if not self.update_labels:
            return nodes, None
        new_labels = class_sum(sent[graph.shown], graph.y, graph.num_classes)
        if graph.label_adjacency is not None:
            new_labels = new_labels + graph.label_adjacency.to(sent.dtype) @ sent_by_labels
        return nodes, label_scale * new_labels

    def _relation(self, from_nodes: Tensor, from_labels: Tensor, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        node_scale = inverse_sqrt(graph.adjacency.degree, from_nodes)
        # a node has one label edge, so only the label's end of Y has a degree to divide by
        label_scale = inverse_sqrt(graph.label_count, from_nodes)
        received = node_scale * neighbor_sum(graph.adjacency, node_scale * from_nodes)
        received = received.index_add(0, graph.shown, label_gather(label_scale * from_labels, graph.y))
        nodes = received / column(graph.node_relations, received)
        if not self.update_labels:
            return nodes, None
        new_labels = label_scale * class_sum(from_nodes[graph.shown], graph.y, graph.num_classes)
        if graph.label_adjacency is not None:
            among = graph.label_adjacency.to(received.dtype)
            scale = inverse_sqrt(among.sum(1), received)
            new_labels = new_labels + scale * (among @ (scale * from_labels))
        return nodes, new_labels / column(graph.label_relations, new_labels)
