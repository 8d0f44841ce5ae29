"""A node classification task on one device: what an epoch reads and never changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.graph import LabelGraph
from legnn.ops import FeatureCache, gather_rows

Candidates = Literal["unlabeled", "unsplit"]
"""Nodes that may get a pseudo label: every node but the training nodes, or only nodes in no split."""

EDGES_AT_A_TIME = 2**27


@dataclass(frozen=True, eq=False)
class Task:
    """Features, graph, labels and splits. The graph shows no labels; `show` adds those of given nodes."""

    x: Tensor
    """`[M, F]`, as the data has them; in the host's memory where they are too large for the device of the rest."""
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
    hot: FeatureCache | None = None
    """Rows of `x` on the device of the graph, where `x` is in the host's memory."""

    @classmethod
    def from_graph(
        cls,
        graph: GraphData,
        device: torch.device,
        *,
        features: torch.device | None = None,
        label_edges: bool = False,
        candidates: Candidates = "unlabeled",
    ) -> Task:
        """Returns the task of a graph on `device`, with the graph's label–label edges if `label_edges`.

        Its features are on the device `features`, if given.
        """

        def moved(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.to(device)

        def nodes(mask: Tensor) -> Tensor:
            return mask.nonzero().flatten().to(device)

        labels = moved(graph.label_adjacency) if label_edges else None
        node_type = moved(graph.node_type)
        may_be_chosen = ~graph.train_mask
        if candidates == "unsplit":
            may_be_chosen = may_be_chosen & ~graph.val_mask & ~graph.test_mask
        if graph.node_types is not None:
            # a node of another type has no class, so it can have no pseudo label
            may_be_chosen = may_be_chosen & graph.node_types.target_mask
        return cls(
            x=graph.x.to(features or device),
            graph=LabelGraph.without_labels(graph.adjacency.to(device), graph.num_classes, labels, node_type),
            y=graph.y.to(device),
            train=nodes(graph.train_mask),
            val=nodes(graph.val_mask),
            test=nodes(graph.test_mask),
            candidates=nodes(may_be_chosen),
            node_type=node_type,
            targets=moved(graph.target_index),
        )

    def with_hot_rows(self, size: int) -> Task:
        """Returns the task with `size` bytes of `x` on the device of the graph: of the nodes that most edges leave."""
        number = min(size // max(self.x[:1].nbytes, 1), self.x.size(0))
        if number == 0:
            return self
        count = torch.zeros(self.x.size(0), dtype=torch.int32, device=self.y.device)
        for sources in self.graph.adjacency.col.split(EDGES_AT_A_TIME):
            # sums of integers are exact in any order
            count.index_add_(0, sources, torch.ones_like(sources, dtype=torch.int32))
        return replace(self, hot=FeatureCache.of(self.x, count, number))

    def rows(self, nodes: Tensor, device: torch.device) -> Tensor:
        """The features of `nodes` `[n]`, on `device`."""
        return gather_rows(self.x, nodes, device, self.hot)

    @cached_property
    def val_y(self) -> Tensor:
        """The classes of the nodes of the validation split."""
        return self.y[self.val]

    def show(self, shown: Tensor) -> LabelGraph:
        """The label graph in which exactly the nodes `shown` show their labels."""
        # without the checks of `LabelGraph.show`, which would synchronize
        return replace(self.graph, shown=shown, y=self.y[shown]) if shown.numel() else self.graph
