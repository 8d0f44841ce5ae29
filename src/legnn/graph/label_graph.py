"""The label graph `A' = [[A, Y], [Yᵀ, S]]`, kept as its blocks and never built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from legnn.graph.adjacency import Adjacency


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """Nodes, labels, and the edges between them in one epoch.

    `A` is the adjacency of the `M` nodes. `Y` has at most one entry in a row, so it is two vectors: the nodes that show
    their label and the class each shows. `S` joins labels to labels and is absent (the paper's `0`) unless given.
    """

    adjacency: Adjacency
    shown: Tensor
    """`[S]` nodes that show their label, each once."""
    y: Tensor
    """`[S]` the class each of them shows."""
    num_classes: int
    label_adjacency: Tensor | None = None
    """`[C, C]` non-negative weights of label–label edges, row = target; None for no such edges."""

    @classmethod
    def without_labels(
        cls, adjacency: Adjacency, num_classes: int, label_adjacency: Tensor | None = None
    ) -> LabelGraph:
        """The graph in which no node shows its label."""
        nothing = adjacency.rowptr.new_empty(0)
        return cls(adjacency, nothing, nothing, num_classes, label_adjacency)

    def show(self, shown: Tensor, y: Tensor) -> LabelGraph:
        """The same graph in which the nodes `shown` show the classes `y`, and no others do."""
        return replace(self, shown=shown, y=y)

    @property
    def num_nodes(self) -> int:
        """`M`."""
        return self.adjacency.num_rows

    @cached_property
    def label_count(self) -> Tensor:
        """`[C]` float: how many nodes show each class, the row sums of `Yᵀ`."""
        # integer counting is exact and does not depend on order, so it is deterministic on every device
        counts = torch.zeros(self.num_classes, dtype=torch.long, device=self.y.device)
        return counts.index_add(0, self.y, torch.ones_like(self.y)).to(self.adjacency.degree.dtype)

    @cached_property
    def shows(self) -> Tensor:
        """`[M]` float: 1 where a node shows its label, the row sums of `Y`."""
        return torch.zeros_like(self.adjacency.degree).index_fill(0, self.shown, 1.0)

    @cached_property
    def node_degree(self) -> Tensor:
        """`[M]` degrees of the nodes in `A'`."""
        return self.adjacency.degree + self.shows

    @cached_property
    def label_degree(self) -> Tensor:
        """`[C]` degrees of the labels in `A'`."""
        return self.label_count if self.label_adjacency is None else self.label_count + self.label_adjacency.sum(1)

    @cached_property
    def node_relations(self) -> Tensor:
        """`[M]` how many kinds of edges (from nodes, from labels) really come in at each node, at least 1."""
        return ((self.adjacency.degree > 0).to(self.shows.dtype) + self.shows).clamp(min=1)

    @cached_property
    def label_relations(self) -> Tensor:
        """`[C]` how many kinds of edges (from nodes, from labels) really come in at each label, at least 1."""
        relations = (self.label_count > 0).to(self.label_count.dtype)
        if self.label_adjacency is not None:
            relations = relations + (self.label_adjacency.sum(1) > 0).to(relations.dtype)
        return relations.clamp(min=1)
