"""The label edges `Y`: which nodes show which class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency, Transposition, move_tensors
from legnn.ops.csr.row_chunks import RowChunks

CLASS_CHUNK = 64
"""Nodes of a class that a GPU sums in one chunk: there are few classes, and only many chunks keep all of it busy."""


@dataclass(frozen=True, eq=False)
class LabelEdges:
    """`Y` `[n, C]`: which of `n` nodes show their label. A row has one entry at most, so that two vectors hold it."""

    shown: Tensor
    """`[S]` nodes that show their label, each once."""
    y: Tensor
    """`[S]` the class that each of them shows."""
    num_nodes: int
    num_classes: int

    @classmethod
    def from_label_of(cls, label_of: Tensor, num_classes: int) -> LabelEdges:
        """From the class that each of `n` nodes shows, `[n]`, -1 for none."""
        shown = (label_of >= 0).nonzero().flatten()
        return cls(shown, label_of[shown].long(), label_of.numel(), num_classes)

    @property
    def is_empty(self) -> bool:
        """Whether no node shows its label."""
        return self.shown.numel() == 0

    @cached_property
    def label_of(self) -> Tensor:
        """`[n]` the class that each node shows, -1 for none."""
        none = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=self.y.device)
        return none.index_copy(0, self.shown, self.y.int())

    @cached_property
    def classes(self) -> Adjacency:
        """`Yᵀ` `[C, n]`: row `c` holds the nodes that show class `c`. Built without synchronizing."""
        # the position of a node among those that show a label, in the order of the nodes: faster than sorting
        before = torch.zeros(self.num_nodes + 1, dtype=torch.int32, device=self.y.device)
        torch.cumsum(self.label_of >= 0, 0, dtype=torch.int32, out=before[1:])
        position = before[self.shown].long()
        y = torch.empty_like(self.y).index_copy(0, position, self.y)
        shown = torch.empty_like(self.shown).index_copy(0, position, self.shown)
        rows = NodeRows(before, y.int(), None, self.num_classes)
        rows.__dict__["nonempty_rows"] = shown.int()
        # few classes are few bits to sort by
        y, order = (y.short() if self.num_classes < 2**15 else y).sort(stable=True)
        classes = ClassRows.from_sorted(y.long(), shown[order], None, self.num_classes, self.num_nodes)
        classes.__dict__["transposition"] = Transposition(rows, order.int())
        return classes

    @cached_property
    def position_in_classes(self) -> Tensor:
        """`[n]` the position of each node in `classes.col`; at least `n` past its end if it shows no label."""
        # `n` past the end: a position stays past it when as many as `n` are subtracted
        none = self.y.numel() + self.num_nodes
        transposition = self.classes.transposition
        shown = transposition.adjacency.nonempty_rows
        assert shown is not None
        position = torch.full((self.num_nodes,), none, dtype=torch.int32, device=self.y.device)
        return position.index_copy(0, shown.long(), transposition.origin)

    @cached_property
    def count(self) -> Tensor:
        """`[C]` how many nodes show each class, the row sums of `Yᵀ`."""
        # sums of integers are exact in any order, so that this is deterministic on every device
        counts = torch.zeros(self.num_classes, dtype=torch.long, device=self.y.device)
        return counts.index_add(0, self.y, torch.ones_like(self.y))

    def to(self, device: torch.device) -> LabelEdges:
        """Returns the edges on `device`; from pinned memory without synchronizing."""
        return move_tensors(self, device)


class ClassRows(Adjacency):
    """`Yᵀ`: few rows, most of them long."""

    @cached_property
    def row_chunks(self) -> RowChunks:
        """All rows in chunks."""
        rows = torch.arange(self.num_rows, dtype=self.rowptr.dtype, device=self.rowptr.device)
        # as many chunks as there may be: the exact number depends on the classes shown, and reading it synchronizes
        return RowChunks.split(self.rowptr, rows, CLASS_CHUNK, self.num_edges // CLASS_CHUNK + self.num_rows)

    @property
    def all_rows_chunked(self) -> bool:
        """True."""
        return True


class NodeRows(Adjacency):
    """`Y`: one entry in a row at most."""

    @property
    def row_chunks(self) -> None:
        """None: no row is long."""
        return None
