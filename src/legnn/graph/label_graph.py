"""The label graph `A' = [[A, Y], [Yᵀ, S]]`, kept as its blocks and never built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency, RowChunks, Transposition

T = TypeVar("T")

PIECE = 64
"""Nodes of a class that are summed by themselves on a GPU: classes are few, and the pieces must keep all of it busy."""


@dataclass(frozen=True, eq=False)
class LabelEdges:
    """`Y` `[n, C]`: which of `n` nodes show their label. At most one entry in a row, so it is two vectors."""

    shown: Tensor
    """`[S]` nodes that show their label, each once."""
    y: Tensor
    """`[S]` the class each of them shows."""
    num_nodes: int
    num_classes: int

    @property
    def is_empty(self) -> bool:
        """Whether nobody shows a label."""
        return self.shown.numel() == 0

    @classmethod
    def among(cls, label_of: Tensor, num_classes: int) -> LabelEdges:
        """From the class that each of `n` nodes shows, `[n]`, -1 for none."""
        shown = (label_of >= 0).nonzero().flatten()
        return cls(shown, label_of[shown].long(), label_of.numel(), num_classes)

    @cached_property
    def label_of(self) -> Tensor:
        """`[n]` the class each node shows, -1 where it shows none."""
        nobody = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=self.y.device)
        return nobody.index_copy(0, self.shown, self.y.int())

    @cached_property
    def classes(self) -> Adjacency:
        """`Yᵀ` in compressed rows `[C, n]`: the nodes that show each class. Made without waiting for the device."""
        # a node's place among those that show a label, in the order of the nodes: counting is faster than sorting
        before = torch.zeros(self.num_nodes + 1, dtype=torch.int32, device=self.y.device)
        torch.cumsum(self.label_of >= 0, 0, dtype=torch.int32, out=before[1:])
        place = before[self.shown].long()
        y = torch.empty_like(self.y).index_copy(0, place, self.y)
        shown = torch.empty_like(self.shown).index_copy(0, place, self.shown)
        rows = _LabelRows(before, y.int(), None, self.num_classes)
        rows.__dict__["occupied"] = shown.int()
        # few classes are few bits to sort by
        y, order = (y.short() if self.num_classes < 2**15 else y).sort(stable=True)
        classes = _ClassRows.from_sorted(y.long(), shown[order], None, self.num_classes, self.num_nodes)
        classes.__dict__["transposition"] = Transposition(rows, order.int())
        return classes

    def to(self, device: torch.device) -> LabelEdges:
        """The same on `device`; from pinned memory without waiting."""
        shown, y = (values.to(device, non_blocking=True) for values in (self.shown, self.y))
        return LabelEdges(shown, y, self.num_nodes, self.num_classes)

    @cached_property
    def slot(self) -> Tensor:
        """`[n]` where each node stands among the edges of `classes`; past all of them where it shows no label."""
        # far enough past them that it stays so when as many are taken off as there are nodes
        nowhere = self.y.numel() + self.num_nodes
        turn = self.classes.transposition
        slot = torch.full((self.num_nodes,), nowhere, dtype=torch.int32, device=self.y.device)
        return slot.index_copy(0, turn.adjacency.occupied.long(), turn.origin)  # type: ignore[union-attr]

    @cached_property
    def count(self) -> Tensor:
        """`[C]` how many nodes show each class, the row sums of `Yᵀ`."""
        # integer counting is exact and does not depend on order, so it is deterministic on every device
        counts = torch.zeros(self.num_classes, dtype=torch.long, device=self.y.device)
        return counts.index_add(0, self.y, torch.ones_like(self.y))


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """Nodes, labels, and the edges between them in one epoch.

    `A` is the adjacency of the `M` nodes. `Y` holds the labels that are shown. `S` joins labels to labels and is absent
    (the paper's `0`) unless given.

    What a layer reads of a graph is written so that it may also be a part of one (`graph.blocks.LabelBlock`): there
    the nodes that receive are the first of those that send, not all edges are there, and degrees and counts are those
    of the whole.
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
        nothing = torch.empty(0, dtype=torch.long, device=adjacency.col.device)
        return cls(adjacency, nothing, nothing, num_classes, label_adjacency)

    def show(self, shown: Tensor, y: Tensor) -> LabelGraph:
        """The same graph in which the nodes `shown` show the classes `y`, and no others do."""
        return replace(self, shown=shown, y=y)

    def hide(self, nodes: Tensor) -> LabelGraph:
        """The same graph in which none of `nodes` shows its label."""
        hidden = torch.zeros(self.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
        stays = ~hidden[self.shown]
        return self.show(self.shown[stays], self.y[stays])

    def layer(self, k: int) -> LabelGraph:
        """What layer `k` (from 0) passes messages on: here the same graph for all of them."""
        return self

    @property
    def at_input(self) -> LabelEdges:
        """The labels that the nodes show whose features are put in."""
        return self.to_nodes

    @property
    def num_nodes(self) -> int:
        """`M`: how many nodes receive."""
        return self.adjacency.num_rows

    def cached(self, key: object, make: Callable[[], T]) -> T:
        """What a layer derives from the graph alone, made for the first layer that asks and kept for the others."""
        kept = self.__dict__.setdefault("_kept", {})
        if key not in kept:
            kept[key] = make()
        value: T = kept[key]
        return value

    @cached_property
    def to_nodes(self) -> LabelEdges:
        """`Y`: the labels that nodes receive."""
        return LabelEdges(self.shown, self.y, self.num_nodes, self.num_classes)

    @property
    def to_labels(self) -> LabelEdges:
        """The edges whose transpose `Yᵀ` carries messages to labels: the same as `to_nodes` in a whole graph."""
        return self.to_nodes

    @property
    def degree(self) -> Tensor:
        """`[M]` degrees in `A` of the nodes that receive."""
        return self.adjacency.degree

    @property
    def source_degree(self) -> Tensor:
        """`[N]` degrees in `A` of the nodes that send."""
        return self.degree

    @property
    def multiplicity(self) -> Tensor | None:
        """`[M]` for how many edges of the whole graph each edge of a node stands; None where all edges are here."""
        return None

    @property
    def label_multiplicity(self) -> Tensor | None:
        """`[C]` for how many nodes each of those that send to a label stands; None where all are here."""
        return None

    @cached_property
    def label_count(self) -> Tensor:
        """`[C]` float: how many nodes show each class."""
        return self.to_labels.count.to(self.degree.dtype)

    @cached_property
    def shows(self) -> Tensor:
        """`[M]` float: 1 where a node that receives shows its label, the row sums of `Y`."""
        return torch.zeros_like(self.degree).index_fill(0, self.shown, 1.0)

    @cached_property
    def node_degree(self) -> Tensor:
        """`[M]` degrees in `A'` of the nodes that receive."""
        return self.degree + self.shows

    @property
    def source_node_degree(self) -> Tensor:
        """`[N]` degrees in `A'` of the nodes that send."""
        return self.node_degree

    @cached_property
    def label_degree(self) -> Tensor:
        """`[C]` degrees of the labels in `A'`."""
        return self.label_count if self.label_adjacency is None else self.label_count + self.label_adjacency.sum(1)

    @cached_property
    def node_relations(self) -> Tensor:
        """`[M]` how many kinds of edges (from nodes, from labels) really come in at each node, at least 1."""
        return ((self.degree > 0).to(self.shows.dtype) + self.shows).clamp(min=1)

    @cached_property
    def label_relations(self) -> Tensor:
        """`[C]` how many kinds of edges (from nodes, from labels) really come in at each label, at least 1."""
        relations = (self.label_count > 0).to(self.label_count.dtype)
        if self.label_adjacency is not None:
            relations = relations + (self.label_adjacency.sum(1) > 0).to(relations.dtype)
        return relations.clamp(min=1)


class _ClassRows(Adjacency):
    """A few rows, every one of them long."""

    @cached_property
    def pieces(self) -> RowChunks:
        rows = torch.arange(self.num_rows, dtype=self.rowptr.dtype, device=self.rowptr.device)
        # how many there are depends on the classes shown in this epoch; asking would make the host wait
        return RowChunks.cut(self.rowptr, rows, PIECE, self.num_edges // PIECE + self.num_rows)

    @property
    def all_rows_in_pieces(self) -> bool:
        return True


class _LabelRows(Adjacency):
    """At most one entry in a row."""

    @property
    def pieces(self) -> None:
        return None
