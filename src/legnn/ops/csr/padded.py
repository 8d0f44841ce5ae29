"""Rows and label edges padded to a fixed size, so that a step over them can be captured as a CUDA graph.

Padding edges come after all others and belong to no row: sums never read them. All that is derived from padded edges
has a size that is known without asking the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency, SampledAdjacency
from legnn.ops.csr.label_edges import ClassRows, LabelEdges, NodeRows
from legnn.ops.csr.transposition import Transposition, inverse_permutation


@dataclass(frozen=True, eq=False)
class PaddedAdjacency(SampledAdjacency):
    """A sampled adjacency whose last columns, past the end of the last row, are `num_cols`: padding edges."""

    @cached_property
    def row(self) -> Tensor:
        """`[edges]`, the target of each edge; the number of rows for padding edges."""
        edge = torch.arange(self.num_edges, dtype=self.rowptr.dtype, device=self.rowptr.device)
        return torch.searchsorted(self.rowptr[1:], edge, right=True).to(self.col.dtype)

    @cached_property
    def transposition(self) -> Transposition:
        """`Aᵀ`; sorting leaves padding edges after its last row."""
        return Transposition(*self.transpose_by_sorting())


@dataclass(frozen=True, eq=False)
class PaddedLabelEdges(LabelEdges):
    """Label edges, the last of which are padding: from any node that is padding itself, with any class as `y`."""

    key: Tensor
    """`[S]` the class, and the number of classes for a padding edge."""

    @cached_property
    def label_of(self) -> Tensor:
        """`[n]` the class that each node shows, -1 for none."""
        none = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=self.y.device)
        label = torch.where(self.key < self.num_classes, self.key, -1).int()
        return none.index_copy(0, self.shown, label)

    @cached_property
    def classes(self) -> Adjacency:
        """`Yᵀ` `[C, n]`; padding edges come after the last class."""
        key, order = self.key.sort(stable=True)
        classes = ClassRows.from_sorted(key, self.shown[order], None, self.num_classes, self.num_nodes)
        classes.__dict__["transposition"] = self._transposition(key, classes.col)
        return classes

    @cached_property
    def count(self) -> Tensor:
        """`[C]` how many nodes show each class."""
        return self.classes.rowptr.diff().long()

    def _transposition(self, key: Tensor, node: Tensor) -> Transposition:
        """`Y` as rows of nodes, from the class `key` and the `node` of every edge in the order of the classes."""
        # padding edges after all nodes
        node, order = torch.where(key < self.num_classes, node, self.num_nodes).sort(stable=True)
        rows = NodeRows.from_sorted(node, key[order], None, self.num_nodes, self.num_classes)
        # a padding node has no edges: nothing is done for it
        rows.__dict__["nonempty_rows"] = node.clamp(max=self.num_nodes - 1).int()
        return Transposition(rows, inverse_permutation(order.int()))
