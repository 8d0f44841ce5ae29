"""GraphSAGE (mean) over a label graph."""

from __future__ import annotations

from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Normalize, column, typed_linear
from legnn.ops import class_sum, label_gather, neighbor_sum


class SAGE(nn.Module):
    r"""`h_i' = mean_j W_φ(j) h_j + R_φ(i) h_i + b_φ(i)`, with `φ` the type of a node: N or L.

    With `normalize="joint"` the mean is over all that come in along `A'`; with `"relation"` a mean is taken within each
    kind of edge, and the kinds a node really has are averaged. On a weighted graph the means are weighted.
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
        self.root = nn.Linear(in_channels, out_channels)
        if self.enhanced:
            self.label = typed_linear(in_channels, out_channels)
        if self.update_labels:
            self.label_root = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, labels: Tensor | None, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[M, in]`, `labels` `[C, in]` or None; gives `[M, out]`, `[C, out]` or None."""
        from_nodes = self.node(x)
        received = neighbor_sum(graph.adjacency, from_nodes)
        if labels is None or not self.enhanced:
            return _mean(received, graph.adjacency.degree) + self.root(x), None
        from_labels = self.label(labels)
        if self.normalize == "relation":
            received = _mean(received, graph.adjacency.degree)
        received = received.index_add(0, graph.shown, label_gather(from_labels, graph.y))
        joint = self.normalize == "joint"
        nodes = _mean(received, graph.node_degree if joint else graph.node_relations) + self.root(x)
        if not self.update_labels:
            return nodes, None
        new_labels = class_sum(from_nodes[graph.shown], graph.y, graph.num_classes)
        if not joint:
            new_labels = _mean(new_labels, graph.label_count)
        if graph.label_adjacency is not None:
            among = graph.label_adjacency.to(received.dtype)
            along = among @ from_labels
            new_labels = new_labels + (along if joint else _mean(along, among.sum(1)))
        new_labels = _mean(new_labels, graph.label_degree if joint else graph.label_relations)
        return nodes, new_labels + self.label_root(labels)


def _mean(total: Tensor, weight: Tensor) -> Tensor:
    """`total / weight`, and the total, which is zero, where nothing came in."""
    return total / column(weight.masked_fill(weight == 0, 1.0), total)
