"""A label-enhanced layer from any PyG convolution that accepts bipartite input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor, nn

from legnn.errors import InputError
from legnn.graph.label_graph import LabelGraph
from legnn.nn.layer import LabelLayer, LayerOptions, Nodes, targets_of, unsqueeze_as
from legnn.ops.backend import autocast

MakeConvolution = Callable[[tuple[int, int], int], nn.Module]
"""Makes one bipartite convolution from `(source channels, target channels)` and the output channels."""


class Lift(LabelLayer):
    """One convolution for each relation (node–node, label–node, node–label); a row is the mean of its relations.

    The convolution is called as PyG calls it on a bipartite graph, `conv((x_source, x_target), edge_index)`, and must
    not add self-loops. The node–node convolution counts for every node, also for one without neighbors; the label–node
    convolution counts for the nodes that show a label. On sampled neighbors it is called with the sample: that suits
    means and attention, while a sum (gin) is then one over fewer neighbors. `dropout` is applied to what is read of the
    sources; the targets are left alone, since a convolution may have a root weight that reads them.
    """

    def __init__(
        self, make: MakeConvolution, in_channels: int, out_channels: int, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(in_channels, out_channels, **options)
        if self.enhanced and self.normalize != "relation":
            raise InputError(
                f"normalize = {self.normalize!r} needs gcn, sage or gat: a lifted convolution normalizes within "
                "each relation on its own; give normalize = 'relation'"
            )
        both = (in_channels, in_channels)
        self.node_to_node = make(both, out_channels)
        self.label_to_node = make(both, out_channels) if self.enhanced else None
        self.node_to_label = make(both, out_channels) if self.update_labels else None

    def forward(
        self,
        x: Tensor,
        labels: Tensor | None,
        graph: LabelGraph,
        residual: Tensor | None = None,
        initial: Nodes | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """See `LabelLayer.forward`."""
        check_liftable(weighted=graph.adjacency.weight is not None, label_edges=graph.label_adjacency is not None)
        # unlike our layers, PyG's convolutions do not convert their matrices to the precision of the features
        with autocast(x.device, enabled=x.dtype == torch.bfloat16):
            nodes, new_labels = self._convolve(x, labels, graph)
        nodes = nodes.to(x.dtype)
        if residual is not None:
            nodes = nodes + targets_of(residual, graph)
        return nodes, None if new_labels is None else new_labels.to(x.dtype)

    def _convolve(self, x: Tensor, labels: Tensor | None, graph: LabelGraph) -> tuple[Tensor, Tensor | None]:
        targets, label_targets = x[: graph.num_nodes], labels
        x = self.drop(x)
        nodes = self.node_to_node((x, targets), graph.adjacency.edge_index)
        if labels is None or self.label_to_node is None:
            return nodes, None
        labels = self.drop(labels)
        from_labels = self.label_to_node((labels, targets), torch.stack([graph.y, graph.shown]))
        nodes = self.mean(nodes, from_labels, graph.label_degree_of_node)
        if self.node_to_label is None:
            return nodes, None
        senders = graph.to_labels
        return nodes, self.node_to_label((x, label_targets), torch.stack([senders.shown, senders.y]))

    def mean(self, nodes: Tensor, from_labels: Tensor, shows: Tensor) -> Tensor:
        """The mean `[M, out]` of what nodes receive from neighbors and from their label, `shows` `[M]` being 1 or 0."""
        shows = unsqueeze_as(shows, nodes)
        return (nodes + shows * from_labels) / (1 + shows)


def check_liftable(*, weighted: bool, label_edges: bool) -> None:
    """Raises `InputError` for a graph with edge weights or label–label edges, which bipartite convolutions ignore."""
    if weighted:
        raise InputError("a lifted convolution takes no edge weights; use gcn, sage or gat on a weighted graph")
    if label_edges:
        raise InputError("a lifted convolution takes no label–label edges; use gcn, sage or gat with them")
