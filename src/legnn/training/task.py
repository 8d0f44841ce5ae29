"""One node classification task on one device: all that an epoch reads and nothing that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from legnn.config.training import ASTrain
from legnn.data import GraphData
from legnn.graph import LabelGraph


@dataclass(frozen=True, eq=False)
class Task:
    """Features, graph, labels and splits. The graph shows no labels: whoever runs the model says which."""

    x: Tensor
    """`[M, F]`, as the data has them."""
    graph: LabelGraph
    y: Tensor
    """`[M]`, -1 where unknown."""
    train: Tensor
    val: Tensor
    test: Tensor
    """Indices of the nodes of each split."""
    candidates: Tensor
    """`[U]` nodes that may get a pseudo label."""
    node_type: Tensor | None = None
    """`[M]` where nodes are of several types."""
    targets: Tensor | None = None
    """`[n]` nodes of the one of these types that is predicted."""

    @classmethod
    def from_graph(
        cls, graph: GraphData, device: torch.device, *, label_edges: bool = False, as_train: ASTrain | None = None
    ) -> Task:
        """Returns the task of a graph on `device`, with the graph's label–label edges if `label_edges`."""
        labels = graph.label_adjacency if label_edges else None
        candidates = ~graph.train_mask
        if as_train is not None and as_train.candidates == "unsplit":
            candidates = ~(graph.train_mask | graph.val_mask | graph.test_mask)
        if graph.node_types is not None:
            # a node of another type has no class, so it can have no pseudo label
            candidates = candidates & graph.node_types.target_mask
        node_type, targets = graph.node_type, graph.target_index
        return cls(
            x=graph.x.to(device),
            graph=LabelGraph.without_labels(
                graph.adjacency.to(device), graph.num_classes, None if labels is None else labels.to(device)
            ),
            y=graph.y.to(device),
            train=graph.train_mask.nonzero().flatten().to(device),
            val=graph.val_mask.nonzero().flatten().to(device),
            test=graph.test_mask.nonzero().flatten().to(device),
            candidates=candidates.nonzero().flatten().to(device),
            node_type=None if node_type is None else node_type.to(device),
            targets=None if targets is None else targets.to(device),
        )

    @cached_property
    def val_y(self) -> Tensor:
        """The classes of the nodes of the validation split."""
        return self.y[self.val]

    def show(self, shown: Tensor) -> LabelGraph:
        """The label graph in which exactly the nodes `shown` show their labels."""
        return self.graph.show(shown, self.y[shown]) if shown.numel() else self.graph
