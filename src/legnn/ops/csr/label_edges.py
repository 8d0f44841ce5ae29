"""The label edges `Y`: which nodes show which class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency, move_tensors
from legnn.ops.csr.row_chunks import RowChunks
from legnn.ops.csr.transposition import Transposition
from legnn.ops.select import TRITON, kernels_for_device


def class_chunk(num_shown: int) -> int:
    """Nodes of a class that a GPU sums in one chunk: classes are few, and only many chunks keep all of it busy."""
    return 64 if num_shown > 4096 else 16


def has_kernels(device: torch.device) -> bool:
    """Whether label edges on `device` are sorted by kernels of ours."""
    return kernels_for_device(device) is TRITON


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

    @classmethod
    def from_classes(cls, shown: Tensor, classes: Tensor, num_classes: int) -> LabelEdges:
        """From the nodes that show their label, `[S]`, and the class of each of `n` nodes, `[n]`."""
        if not has_kernels(classes.device):
            return cls(shown, classes[shown], classes.numel(), num_classes)
        from legnn.ops.csr.triton_kernels import show_labels

        y, label_of, count_minus_one = show_labels(shown, classes, num_classes)
        edges = cls(shown, y, classes.numel(), num_classes)
        edges.__dict__["label_of"] = label_of
        if count_minus_one is not None:
            edges.__dict__["count_minus_one"] = count_minus_one
        return edges

    @property
    def is_empty(self) -> bool:
        """Whether no node shows its label."""
        return self.shown.numel() == 0

    @cached_property
    def label_of(self) -> Tensor:
        """`[n]` the class that each node shows, -1 for none."""
        if has_kernels(self.y.device):
            from legnn.ops.csr.triton_kernels import write_labels

            return write_labels(self.shown, self.y, self.num_nodes)
        none = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=self.y.device)
        return none.index_copy(0, self.shown, self.y.int())

    @cached_property
    def classes(self) -> Adjacency:
        """`Yᵀ` `[C, n]`: row `c` holds the nodes that show class `c`. Built without synchronizing."""
        return self._classes_by_counting() or self._classes_by_sorting()

    def _classes_by_counting(self) -> Adjacency | None:
        """On a GPU, where sorting and searching are many small launches; None where counting is no faster."""
        if not has_kernels(self.y.device):
            return None
        from legnn.ops.csr.triton_kernels import order_by_class

        number = self.y.numel()
        chunk = class_chunk(number)
        found = order_by_class(self.label_of, number, self.num_classes, chunk, _max_chunks(number, self.num_classes))
        if found is None:
            return None
        rows = NodeRows(found.node_rowptr, found.node_y, None, self.num_classes)
        rows.__dict__.update(nonempty_rows=found.shown, nonempty_spans=(found.bounds[:-1], found.bounds[1:]))
        classes = ClassRows(found.class_rowptr, found.col, None, self.num_nodes)
        chunks = RowChunks(*found[-5:], chunk)
        classes.__dict__.update(row_chunks=chunks, transposition=Transposition(rows, found.order))
        return classes

    def _classes_by_sorting(self) -> Adjacency:
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
    def count_minus_one(self) -> Tensor:
        """`[C]` int32: how many nodes show each class, minus one."""
        return self.classes.rowptr.diff().int() - 1

    @cached_property
    def count(self) -> Tensor:
        """`[C]` how many nodes show each class, the row sums of `Yᵀ`."""
        if has_kernels(self.y.device):
            return self.count_minus_one.long() + 1
        # sums of integers are exact in any order, so that this is deterministic on every device
        counts = torch.zeros(self.num_classes, dtype=torch.long, device=self.y.device)
        return counts.index_add(0, self.y, torch.ones_like(self.y))

    def to(self, device: torch.device) -> LabelEdges:
        """Returns the edges on `device`; from pinned memory without synchronizing."""
        return move_tensors(self, device)


def _max_chunks(num_shown: int, num_classes: int) -> int:
    """As many chunks as there may be: how many there are depends on the classes, and reading it synchronizes."""
    return num_shown // class_chunk(num_shown) + num_classes


class ClassRows(Adjacency):
    """`Yᵀ`: few rows, most of them long."""

    @cached_property
    def row_chunks(self) -> RowChunks:
        """All rows in chunks."""
        rows = torch.arange(self.num_rows, dtype=self.rowptr.dtype, device=self.rowptr.device)
        most = _max_chunks(self.num_edges, self.num_rows)
        return RowChunks.split(self.rowptr, rows, class_chunk(self.num_edges), most)

    @property
    def chunked_rows(self) -> tuple[Tensor, Tensor]:
        """Those of all rows."""
        return self.rowptr[:-1], self.rowptr[1:]

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
