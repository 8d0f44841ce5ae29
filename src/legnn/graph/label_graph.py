"""The label graph `A' = [[A, Y], [Yᵀ, S]]`, stored as its blocks and never built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.label_edges import LabelEdges

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """Nodes, labels, and the edges between them in one epoch.

    `A` is the adjacency of the `M` nodes, `Y` holds the shown labels, and `S` the label–label edges, which are absent
    (the paper's `0`) unless given.

    A layer reads a whole graph or a `graph.blocks.LabelBlock`, which computes `M` target nodes from `N ≥ M` source
    nodes with some of their edges. In a whole graph `M = N`.
    """

    adjacency: Adjacency
    shown: Tensor
    """`[S]` nodes that show their label, each once."""
    y: Tensor
    """`[S]` the class that each of them shows."""
    num_classes: int
    label_adjacency: Tensor | None = None
    """`[C, C]` non-negative weights of label–label edges, row = target; None for no such edges."""
    node_type: Tensor | None = None
    """`[N]` the types of the source nodes; None where all nodes are of one type."""

    @classmethod
    def without_labels(
        cls,
        adjacency: Adjacency,
        num_classes: int,
        label_adjacency: Tensor | None = None,
        node_type: Tensor | None = None,
    ) -> LabelGraph:
        """The graph in which no node shows its label."""
        empty = torch.empty(0, dtype=torch.long, device=adjacency.col.device)
        return cls(adjacency, empty, empty, num_classes, label_adjacency, node_type)

    def show(self, shown: Tensor, y: Tensor) -> LabelGraph:
        """Returns the graph in which the nodes `shown` show the classes `y`, and no other node shows its label."""
        return replace(self, shown=shown, y=y)

    @property
    def num_shown(self) -> int:
        """`S`: how many nodes show their label."""
        return self.shown.numel()

    def hide(self, nodes: Tensor) -> LabelGraph:
        """Returns the graph in which none of `nodes` shows its label."""
        hidden = torch.zeros(self.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
        stays = ~hidden[self.shown]
        return self.show(self.shown[stays], self.y[stays])

    def layer(self, k: int) -> LabelGraph:
        """Returns what layer `k` (from 0) reads: this graph."""
        return self

    @property
    def at_input(self) -> LabelEdges:
        """The labels that the input nodes show."""
        return self.to_nodes

    @property
    def num_nodes(self) -> int:
        """`M`: number of target nodes."""
        return self.adjacency.num_rows

    def cached(self, key: object, make: Callable[[], T]) -> T:
        """Returns `make()`, called once for each `key`: for what layers derive from the graph alone."""
        cache = self.__dict__.setdefault("_cache", {})
        if key not in cache:
            cache[key] = make()
        return cache[key]

    def cached_for_edges(self, key: object, make: Callable[[], T]) -> T:
        """Returns `make()`, called once for each `key` and adjacency: for what does not depend on the labels shown."""
        cache = self.adjacency.__dict__.setdefault("_cache", {})
        if key not in cache:
            cache[key] = make()
        return cache[key]

    def if_shown(self, key: object, make: Callable[[Tensor], T]) -> tuple[T, T]:
        """Returns `make(shows)` for `shows` `[M]` all 0 and for all 1, computed once for each `key` and adjacency."""
        none = torch.zeros_like
        return self.cached_for_edges(key, lambda: (make(none(self.degree)), make(none(self.degree) + 1)))

    def by_shown(self, key: object, make: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """Returns `make(shows)`, numbers `[M]`, where `shows` is 1 for target nodes that show their label, else 0.

        Whoever shows a label, each number is one of two.
        """
        hidden, shown = self.if_shown(key, make)
        is_shown = self.to_nodes.label_of >= 0
        return tuple(torch.where(is_shown, *pair) for pair in zip(shown, hidden, strict=True))

    @cached_property
    def to_nodes(self) -> LabelEdges:
        """`Y` of the target nodes: edges from labels to nodes."""
        return LabelEdges(self.shown, self.y, self.num_nodes, self.num_classes)

    @property
    def to_labels(self) -> LabelEdges:
        """`Y` of the source nodes, whose transpose `Yᵀ` holds the edges from nodes to labels."""
        return self.to_nodes

    @property
    def degree(self) -> Tensor:
        """`[M]` degrees in `A` of the target nodes."""
        return self.adjacency.degree

    @property
    def source_degree(self) -> Tensor:
        """`[N]` degrees in `A` of the source nodes."""
        return self.degree

    @property
    def real(self) -> Tensor | None:
        """`[M]` bool: which targets are nodes; None if all are, and none is padding."""
        return None

    @property
    def multiplicity(self) -> Tensor | None:
        """`[M]` how many edges of the whole graph each edge of a target represents; None if all edges are here."""
        return None

    @property
    def label_multiplicity(self) -> Tensor | None:
        """`[C]` how many nodes of the whole graph each sender to a label represents; None if all are here."""
        return None

    @cached_property
    def label_count(self) -> Tensor:
        """`[C]` float: how many nodes show each class."""
        return self.to_labels.count.to(self.degree.dtype)

    @cached_property
    def shows(self) -> Tensor:
        """`[M]` float: 1 if a target node shows its label, else 0; the row sums of `Y`."""
        return torch.zeros_like(self.degree).index_fill(0, self.shown, 1.0)

    @cached_property
    def node_degree(self) -> Tensor:
        """`[M]` degrees in `A'` of the target nodes."""
        return self.degree + self.shows

    @property
    def source_node_degree(self) -> Tensor:
        """`[N]` degrees in `A'` of the source nodes."""
        return self.node_degree

    @cached_property
    def label_degree(self) -> Tensor:
        """`[C]` degrees of the labels in `A'`."""
        return self.label_count if self.label_adjacency is None else self.label_count + self.label_adjacency.sum(1)

    @cached_property
    def label_relations(self) -> Tensor:
        """`[C]` of how many kinds (from nodes, from labels) the incoming edges of each label are, at least 1."""
        relations = (self.label_count > 0).to(self.label_count.dtype)
        if self.label_adjacency is not None:
            relations = relations + (self.label_adjacency.sum(1) > 0).to(relations.dtype)
        return relations.clamp(min=1)
