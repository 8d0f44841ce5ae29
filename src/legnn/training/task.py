"""A node classification task on one device: what an epoch reads and never changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from legnn.config import SelfTrainingSettings
from legnn.graph import Adjacency, LabelGraph


@dataclass(frozen=True, eq=False)
class Task:
    """Features, graph, labels and splits. The graph shows no labels; `show` adds those of given nodes."""

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
    def from_data(
        cls,
        data: Data,
        device: torch.device,
        *,
        label_edges: bool = False,
        as_train: SelfTrainingSettings | None = None,
    ) -> Task:
        """Lay the data out on `device`, with the label–label edges that come with them if `label_edges`."""
        adjacency = Adjacency.from_data(data).to(device)
        label_adjacency = data.label_adjacency.to(device) if label_edges else None
        if as_train is not None and as_train.candidates == "unsplit":
            candidates = ~(data.train_mask | data.val_mask | data.test_mask)
        else:
            candidates = ~data.train_mask
        node_type, targets = data.get("node_type"), None
        if node_type is not None:
            targets = data.target_mask.nonzero().flatten().to(device)
            # a node of another type has no class, so it can have no pseudo label
            candidates = candidates & data.target_mask
        return cls(
            x=data.x.to(device),
            graph=LabelGraph.without_labels(adjacency, len(data.class_names), label_adjacency),
            y=data.y.to(device),
            train=data.train_mask.nonzero().flatten().to(device),
            val=data.val_mask.nonzero().flatten().to(device),
            test=data.test_mask.nonzero().flatten().to(device),
            candidates=candidates.nonzero().flatten().to(device),
            node_type=None if node_type is None else node_type.to(device),
            targets=targets,
        )

    @cached_property
    def val_y(self) -> Tensor:
        """The classes of the nodes of the validation split."""
        return self.y[self.val]

    def show(self, shown: Tensor) -> LabelGraph:
        """The label graph in which exactly the nodes `shown` show their labels."""
        return self.graph.show(shown, self.y[shown]) if shown.numel() else self.graph
