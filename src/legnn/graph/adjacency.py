"""The adjacency of a graph in compressed rows, prepared once and used by every layer of every epoch."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Adjacency:
    """`A` in compressed rows: row `i` holds the sources `j` of the edges `j → i`, so that `(A x)_i = Σ_j A_ij x_j`.

    PyG's `edge_index` reads `[source, target]`; targets are the rows here, sources the columns. An edge of weight 2
    counts as two edges, in every backbone. Parallel edges are kept as they come.
    """

    rowptr: Tensor
    """`[rows + 1]`, where each row begins."""
    col: Tensor
    """`[edges]`, the source of each edge, ascending within a row."""
    weight: Tensor | None
    """`[edges]`, positive, or None where every edge weighs 1."""
    num_cols: int

    @classmethod
    def from_edge_index(cls, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Adjacency:
        """From PyG's `edge_index` `[2, E]` (source, target) and optional `edge_weight` `[E]`."""
        source, target = edge_index
        order = torch.argsort(target * num_nodes + source, stable=True)
        return cls.from_sorted(
            target[order], source[order], None if edge_weight is None else edge_weight[order], num_nodes, num_nodes
        )

    @classmethod
    def from_sorted(cls, row: Tensor, col: Tensor, weight: Tensor | None, num_rows: int, num_cols: int) -> Adjacency:
        """From edges already ascending by row."""
        rowptr = torch.zeros(num_rows + 1, dtype=torch.long, device=row.device)
        torch.cumsum(torch.bincount(row, minlength=num_rows), 0, out=rowptr[1:])
        return cls(rowptr, col, weight, num_cols)

    @property
    def num_rows(self) -> int:
        """How many nodes receive."""
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """How many edges there are, self-loops included."""
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """`[edges]`, the target of each edge."""
        counts = self.rowptr[1:] - self.rowptr[:-1]
        return torch.repeat_interleave(counts, output_size=self.num_edges)

    @cached_property
    def edge_index(self) -> Tensor:
        """`[2, E]` in PyG's order (source, target)."""
        return torch.stack([self.col, self.row])

    @cached_property
    def degree(self) -> Tensor:
        """`[rows]` float: the sum of the weights of the edges that come in."""
        if self.weight is None:
            return (self.rowptr[1:] - self.rowptr[:-1]).to(torch.get_default_dtype())
        return torch.zeros(self.num_rows, dtype=self.weight.dtype, device=self.weight.device).index_add(
            0, self.row, self.weight
        )

    @cached_property
    def transpose(self) -> Adjacency:
        """`Aᵀ`, which carries gradients back; a symmetric graph is its own."""
        order = torch.argsort(self.col * max(self.num_rows, 1) + self.row, stable=True)
        weight = None if self.weight is None else self.weight[order]
        turned = Adjacency.from_sorted(self.col[order], self.row[order], weight, self.num_cols, self.num_rows)
        return self if self._equals(turned) else turned

    def _equals(self, other: Adjacency) -> bool:
        return (
            self.num_cols == other.num_cols
            and torch.equal(self.rowptr, other.rowptr)
            and torch.equal(self.col, other.col)
            and (self.weight is None or (other.weight is not None and torch.equal(self.weight, other.weight)))
        )

    @cached_property
    def csr(self) -> Tensor:
        """The same as a PyTorch sparse tensor, for its sparse products."""
        values = self.weight if self.weight is not None else torch.ones_like(self.col, dtype=torch.get_default_dtype())
        return self.csr_with(values)

    def csr_with(self, values: Tensor) -> Tensor:
        """A PyTorch sparse tensor with these entries and other values `[edges]`."""
        with warnings.catch_warnings():
            # PyTorch says once in every process that compressed rows are in beta, or that they are not checked
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(
                self.rowptr, self.col, values, size=(self.num_rows, self.num_cols), check_invariants=False
            )

    def to(self, device: torch.device | str) -> Adjacency:
        """The same adjacency on `device`."""
        weight = None if self.weight is None else self.weight.to(device)
        return Adjacency(self.rowptr.to(device), self.col.to(device), weight, self.num_cols)
