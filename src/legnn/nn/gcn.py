"""GCN over a label graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Normalize, biased, column, counted, inverse, inverse_sqrt, scale_dtype, typed_linear
from legnn.nn.linear_messages import propagate_product
from legnn.ops import Scales


class GCN(nn.Module):
    r"""`H_N' = Â H_N W_N + Ŷ H_L W_L`, `H_L' = Ŷᵀ H_N W_N + Ŝ H_L W_L`, each plus a bias.

    With `normalize="joint"` the hats are blocks of `D'^{-1/2} A' D'^{-1/2}`, the degrees counted in `A'`. With
    `"relation"` each block is normalized by its own degrees, `D_r^{-1/2} A_r D_c^{-1/2}`, and the blocks that really
    come in at a row are averaged. Degrees are those of incoming edges, as in PyG's `GCNConv`. Self-loops are the
    graph's affair, not the layer's. `bias=False` leaves out the nodes' bias, which a batch norm would take off again.
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
        self.enhanced, self.update_labels, self.normalize = enhanced, enhanced and update_labels, normalize
        self.node = typed_linear(in_channels, out_channels)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        if self.enhanced:
            self.label = typed_linear(in_channels, out_channels)
        if self.update_labels:
            self.label_bias = nn.Parameter(torch.zeros(out_channels))

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[M, in]`, `labels` `[C, in]` or None; gives `[M, out]`, `[C, out]` or None."""
        dtype = scale_dtype(x)
        from_labels = self.label(labels) if labels is not None and self.enhanced else None
        kind = "vanilla" if from_labels is None else self.normalize
        scales, label_scale = graph.cached(("gcn", kind, dtype), lambda: _scales(graph, kind, dtype))
        add = None if add is None else add[: graph.num_nodes]
        if from_labels is not None:
            from_labels = column(label_scale, x) * from_labels
        update = self.update_labels and kind != "vanilla"
        nodes, sums = propagate_product(graph, x, self.node.weight, from_labels, add, scales, classes=update)
        nodes = biased(nodes, self.bias)
        if sums is None or from_labels is None:
            return nodes, None
        new_labels = column(counted(label_scale, graph.label_multiplicity), x) * sums
        if graph.label_adjacency is not None:
            new_labels = new_labels + self._among_labels(labels, from_labels, label_scale, graph)
        if kind == "relation":
            new_labels = new_labels / column(graph.label_relations, x)
        return nodes, new_labels[:, : self.label_bias.numel()] + self.label_bias.to(x.dtype)

    def _among_labels(self, labels: Tensor | None, sent: Tensor, label_scale: Tensor, graph: LabelGraph) -> Tensor:
        assert labels is not None
        assert graph.label_adjacency is not None
        among = graph.label_adjacency.to(sent.dtype)
        if self.normalize == "joint":
            return column(label_scale, sent) * (among @ sent)
        scale = column(inverse_sqrt(among.sum(1), among.dtype), among)
        return scale * (among @ (scale * self.label(labels)))


def _scales(graph: LabelGraph, kind: str, dtype: torch.dtype) -> tuple[Scales, Tensor]:
    """The scales of the nodes' messages, and `[C]` those of the labels."""
    if kind == "joint":
        source, target = inverse_sqrt(graph.source_node_degree, dtype), inverse_sqrt(graph.node_degree, dtype)
        scales = Scales(source, counted(target, graph.multiplicity), target, source)
        return scales, inverse_sqrt(graph.label_degree, dtype)
    source = inverse_sqrt(graph.source_degree, dtype)
    target = counted(inverse_sqrt(graph.degree, dtype), graph.multiplicity)
    # a node has one label edge, so only the label's end of Y has a degree to divide by
    label_scale = inverse_sqrt(graph.label_count, dtype)
    if kind == "vanilla":
        return Scales(source, target), label_scale
    relations = graph.node_relations.to(dtype)
    return Scales(source, target / relations, inverse(relations, dtype)), label_scale
