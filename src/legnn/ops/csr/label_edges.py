"""The label edges `Y`: which nodes show which class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency, inverse_permutation
from legnn.ops.csr.keyed_cache import KeyedCache, derived


@dataclass(frozen=True, eq=False)
class LabelEdges(KeyedCache):
    """`Y` `[n, C]`: which of `n` nodes show their label. A row has one entry at most, so that two vectors hold it.

    With padding, the last edges are from any node that is padding itself, with any class as `y`. Sums never read them.
    """

    shown: Tensor
    """`[S]` nodes that show their label, each once."""
    y: Tensor
    """`[S]` the class that each of them shows."""
    num_nodes: int
    num_classes: int
    padded_y: Tensor | None = None
    """`[S]` as `y`, and the number of classes for a padding edge; None without padding."""

    @classmethod
    def from_label_of(cls, label_of: Tensor, num_classes: int) -> LabelEdges:
        """From the class that each of `n` nodes shows, `[n]`, -1 for none."""
        shown = (label_of >= 0).nonzero().flatten()
        return cls(shown, label_of[shown].long(), label_of.numel(), num_classes)

    @property
    def is_empty(self) -> bool:
        """Whether no node shows its label."""
        return self.shown.numel() == 0

    @derived
    def label_of(self) -> Tensor:
        """`[n]` the class that each node shows, -1 for none."""
        none = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=self.y.device)
        y = self.y if self.padded_y is None else self.padded_y.where(self.padded_y < self.num_classes, -1)
        return none.index_copy(0, self.shown, y.int())

    @derived
    def classes(self) -> Adjacency:
        """`Yᵀ` `[C, n]`: row `c` holds the nodes that show class `c`, ascending. Built without synchronizing."""
        before = torch.zeros(self.num_nodes + 1, dtype=torch.int32, device=self.y.device)
        torch.cumsum(self.label_of >= 0, 0, dtype=torch.int32, out=before[1:])
        y = self.y if self.padded_y is None else self.padded_y
        # padding edges come after all nodes; a padding node has no edges: nothing is done for it
        shown, order = self.shown.where(y < self.num_classes, self.num_nodes).sort(stable=True)
        y, shown = y[order], shown.clamp(max=self.num_nodes - 1)
        rows = Adjacency(before, y.int(), None, self.num_classes, chunking="none")
        # few classes are few bits to sort by
        y, order = (y.short() if self.num_classes < 2**15 else y).sort(stable=True)
        sorted_ = Adjacency.from_sorted(y.long(), shown[order], None, self.num_classes, self.num_nodes)
        classes = replace(sorted_, chunking="all")
        classes.cached("transposition", lambda: (rows, inverse_permutation(order.int())))
        return classes

    @derived
    def position_in_classes(self) -> Tensor:
        """`[n]` the position of each node in `classes.col`; at least `n` past its end if it shows no label."""
        # `n` past the end: a position stays past it when as many as `n` are subtracted
        none = self.y.numel() + self.num_nodes
        position = torch.full((self.num_nodes,), none, dtype=torch.int32, device=self.y.device)
        numbers = torch.arange(self.y.numel(), dtype=torch.int32, device=self.y.device)
        return position.index_copy(0, self.classes.col.long(), numbers)

    @derived
    def count(self) -> Tensor:
        """`[C]` how many nodes show each class, the row sums of `Yᵀ`."""
        # sums of integers are exact in any order, so that this is deterministic on every device
        y = self.y if self.padded_y is None else self.padded_y
        return y.new_zeros(self.num_classes + 1).index_add(0, y, torch.ones_like(y))[:-1]
