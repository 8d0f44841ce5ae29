"""RGCN (Schlichtkrull et al., 2018) over a label graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor, nn

from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import LabelLayer, LayerOptions, Linear, Nodes, glorot_linear, targets_of
from legnn.nn.message_passing import class_mean, pass_linear_messages
from legnn.nn.normalization import Normalization
from legnn.nn.relations import SINGLE_RELATION, Relation, relation_graph
from legnn.ops.propagate import add_labels_

MEAN = Normalization("relation", target=-1.0, source=0.0)
"""Over the edges of a relation that are there: of a sample, over the sample."""


class RGCN(LabelLayer):
    r"""`h_i' = W_0,τ(i) h_i + Σ_r 1 / |N_i^r| Σ_{j ∈ N_i^r} W_r h_j + W_LN h_{y_i} + b_τ(i)`, `τ` the type of a node.

    A label is one more neighbor of the nodes that show it, and the nodes are those of the label:
    `h_c' = R_L h_c + 1 / n_c Σ_{y_j = c} W_NL h_j + W_LL Σ_d S_cd h_d / Σ_d S_cd + b_L`, the third term with
    label–label edges `S` only. On a weighted graph the means are weighted. Options: see `LabelLayer`; each
    relation has weights of its own in place of a normalization.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_types: int = 1,
        relations: Sequence[Relation] = (),
        label_edges: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_channels, out_channels, **options)
        self.num_types, self.relations = num_types, tuple(relations) or SINGLE_RELATION

        def matrix(needed: bool) -> Linear | None:
            return glorot_linear(in_channels, out_channels) if needed else None

        self.roots = nn.ModuleList(
            Linear(in_channels, out_channels, bias=self.has_bias) for _ in range(num_types)
        )  # W_0, b
        self.neighbors = nn.ModuleList(glorot_linear(in_channels, out_channels) for _ in self.relations)  # W_r
        self.label_to_node = matrix(self.enhanced)  # W_LN
        self.node_to_label = matrix(self.update_labels)  # W_NL
        self.label_to_label = matrix(self.update_labels and label_edges)  # W_LL
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
        edges = relation_graph(graph, self.num_types, self.relations)
        parts = [root(part) for root, part in zip(self.roots, edges.targets.split(x), strict=True)]
        sent = self.drop(x)
        by_type = edges.sources.split(sent)
        for linear, ((source, target), relation) in zip(self.neighbors, edges.relations.items(), strict=True):
            weight = linear.get_parameter("weight")
            parts[target] = pass_linear_messages(
                relation, by_type[source], weight, None, parts[target], MEAN, update_labels=False
            )[0]
        nodes = edges.targets.join(parts)
        nodes = nodes if residual is None else nodes + targets_of(residual, graph)
        if labels is None or self.label_to_node is None:
            return nodes, None
        dropped = self.drop(labels)
        nodes = add_labels_(graph.to_nodes, nodes, self.label_to_node(dropped))
        if self.label_root is None or self.node_to_label is None:
            return nodes, None
        new_labels = self.label_root(labels) + self.node_to_label(class_mean(graph, sent))
        if self.label_to_label is not None and graph.label_adjacency is not None:
            S = graph.label_adjacency.to(labels.dtype)
            total = S.sum(1, keepdim=True)
            new_labels = new_labels + self.label_to_label(S @ dropped / total.masked_fill(total == 0, 1.0))
        return nodes, new_labels
