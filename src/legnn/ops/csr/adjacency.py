"""The adjacency of a graph as CSR, built once and used by every layer in every epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.ops.backend import backend
from legnn.ops.checks import check_count, check_index, check_range, check_tensor, check_weight
from legnn.ops.csr.build import CSR
from legnn.ops.csr.keyed_cache import KeyedCache, derived
from legnn.ops.csr.reference import row_of_edges, row_pointers
from legnn.ops.csr.row_chunks import LONG_ROW, LONG_SAMPLED_ROW, RowChunks

T = TypeVar("T", bound=Any)

FEW_EDGES = 2**16
"""With fewer edges than this, summing even one row of all of them takes less time than splitting it."""

NUM_PARTITIONS = 32
"""Parts of the rows with about the same work, among which the threads of a CPU choose."""

Chunking = Literal["long", "longest", "all", "none"]
"""Which rows a GPU sums in chunks: those longer than `LONG_ROW`; as many of the longest as may be long, which is known
without synchronizing; all; or none."""


@dataclass(frozen=True, eq=False)
class Adjacency(KeyedCache):
    """`A` as CSR: row `i` holds the sources `j` of the edges `j → i`, so that `(A x)_i = Σ_j A_ij x_j`.

    PyG's `edge_index` is `[source, target]`; here targets are rows, and sources are columns. An edge of weight 2 counts
    as two edges, in every backbone. Parallel edges stay apart. The edges of a sample may have padding after them, which
    belongs to no row, and whose column is `num_cols`.

    `from_edge_index` and `from_csr` check what they get; the constructor does not. The tensors must not be changed:
    what is derived from them, such as the transpose, is cached.
    """

    rowptr: Tensor
    """`[rows + 1]`, the position of each row's first edge."""
    col: Tensor
    """`[edges]`, the source of each edge, ascending within a row; in a sample, in the order drawn."""
    weight: Tensor | None
    """`[edges]`, positive, or None if every edge weighs 1."""
    num_cols: int
    chunking: Chunking = "long"
    is_sample: bool = False
    """Whether it is one of many that steps read once: it is not compared with its transpose."""
    edge: Tensor | None = None
    """`[edges]` the position of each edge of a sample in the whole adjacency; None if not requested."""

    @classmethod
    def from_edge_index(cls, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Adjacency:
        """From PyG's `edge_index` `[2, E]` (source, target) and optional `edge_weight` `[E]`; copies both."""
        num_nodes = check_count("num_nodes", num_nodes)
        if check_tensor("edge_index", edge_index).dim() != 2 or edge_index.size(0) != 2:
            raise InputError(f"`edge_index` must have the shape [2, E], not {list(edge_index.shape)}")
        source, target = check_index("edge_index", edge_index.reshape(-1), num_nodes).view(2, -1)
        weight = None if edge_weight is None else check_weight("edge_weight", edge_weight, (source.numel(),))
        rowptr, col, weight = backend("csr", source.device).sort_edges(target, source, weight, num_nodes)
        return cls(_narrow(rowptr, col.numel()), _narrow(col, num_nodes), weight, num_nodes)

    @classmethod
    def from_csr(cls, csr: CSR, num_cols: int) -> Adjacency:
        """From NumPy arrays, whose memory it shares: they must not be changed."""
        rowptr, col, values = (None if each is None else torch.from_numpy(np.asarray(each)) for each in csr)
        rowptr, col = (check_tensor("rowptr", rowptr), check_tensor("col", col))
        for name, index in (("rowptr", rowptr), ("col", col)):
            if index.dim() != 1 or index.dtype not in (torch.int32, torch.int64):
                raise InputError(f"`{name}` must be a vector of int32 or int64, not {index.dtype} {list(index.shape)}")
        if not rowptr.numel() or rowptr[0] != 0 or rowptr[-1] != col.numel() or bool((rowptr.diff() < 0).any()):
            raise InputError("`rowptr` must ascend from 0 to the number of edges")
        check_range("col", col, check_count("num_cols", num_cols))
        weight = None if values is None else check_weight("weight", values, (col.numel(),))
        return cls(rowptr, col, weight, num_cols)

    @classmethod
    def from_sorted(cls, row: Tensor, col: Tensor, weight: Tensor | None, num_rows: int, num_cols: int) -> Adjacency:
        """From edges that ascend by row. Indices become int32 if they fit. Does not synchronize."""
        return cls(_narrow(row_pointers(row, num_rows), col.numel()), _narrow(col, num_cols), weight, num_cols)

    @classmethod
    def sampled(
        cls, rowptr: Tensor, col: Tensor, weight: Tensor | None, num_cols: int, fanout: int | None, edge: Tensor | None
    ) -> Adjacency:
        """Some edges of some rows: at most `fanout` of each, which saves counting the long rows."""
        is_short = fanout is not None and fanout <= LONG_SAMPLED_ROW
        return cls(rowptr, col, weight, num_cols, "none" if is_short else "long", is_sample=True, edge=edge)

    @property
    def num_rows(self) -> int:
        """Number of targets."""
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of edges, self-loops included."""
        return self.col.numel()

    @derived
    def row(self) -> Tensor:
        """`[edges]`, the target of each edge; the number of rows for padding edges."""
        return row_of_edges(self.rowptr, self.num_edges).to(self.col.dtype)

    @derived
    def edge_index(self) -> Tensor:
        """`[2, E]` in PyG's order (source, target)."""
        return torch.stack([self.col, self.row]).long()

    @derived
    def degree(self) -> Tensor:
        """`[rows]` float: the sum of the weights of a row."""
        if self.weight is None:
            return self.rowptr.diff().to(torch.get_default_dtype())
        return torch.segment_reduce(self.weight, "sum", offsets=self.rowptr.long(), initial=0)

    @property
    def transpose(self) -> Adjacency:
        """`Aᵀ`, along which gradients are passed back; `A` itself if it is symmetric."""
        # a symmetric adjacency that cached itself would be freed by a collection of garbage alone
        return self.transposition[0] or self

    @property
    def inv_perm(self) -> Tensor:
        """`[edges]` the position in `A` of each edge of `Aᵀ`."""
        return self.transposition[1]

    @derived
    def perm(self) -> Tensor:
        """`[edges]` the position in `Aᵀ` of each edge of `A`."""
        return inverse_permutation(self.inv_perm)

    @derived
    def transposition(self) -> tuple[Adjacency | None, Tensor]:
        """`transpose`, None for `A` itself, and `inv_perm`."""
        rowptr, col, inv_perm = backend("csr", self.col.device).transpose(self.rowptr, self.col, self.num_cols)
        transposed = Adjacency(
            _narrow(rowptr, self.num_edges),
            _narrow(col, self.num_rows),
            None if self.weight is None else self.weight[inv_perm],
            self.num_rows,
            # counting the long rows of a sample, which is used once, is not worth synchronizing
            "longest" if self.is_sample else "long",
            self.is_sample,
        )
        is_symmetric = not self.is_sample and self._equals(transposed)
        return None if is_symmetric else transposed, _narrow(inv_perm, self.num_edges)

    def _equals(self, other: Adjacency) -> bool:
        return (
            self.num_cols == other.num_cols
            and torch.equal(self.rowptr, other.rowptr)
            and torch.equal(self.col, other.col)
            and (self.weight is None or (other.weight is not None and torch.equal(self.weight, other.weight)))
        )

    @derived
    def row_chunks(self) -> RowChunks | None:
        """The rows that `chunking` names in chunks; None if there are none."""
        if self.chunking == "none" or (self.chunking == "longest" and self.num_edges < FEW_EDGES):
            return None
        if self.chunking == "all":
            # classes are few, and only many chunks keep all of a GPU busy
            length = 64 if self.num_edges > 4096 else 16
            rows = torch.arange(self.num_rows, dtype=self.rowptr.dtype, device=self.rowptr.device)
            # how many chunks there are depends on the rows, and reading it would synchronize
            return RowChunks.split(self.rowptr, rows, length, self.num_edges // length + self.num_rows)
        count = self.rowptr.diff()
        if self.chunking == "longest":
            # a row among them that is not long is summed twice, to the same sum
            most = min(self.num_edges // LONG_SAMPLED_ROW, self.num_rows)
            rows = count.topk(most, sorted=False).indices.to(self.rowptr.dtype)
            return RowChunks.split(self.rowptr, rows, LONG_SAMPLED_ROW, self.num_edges // LONG_SAMPLED_ROW + most)
        rows = (count > LONG_ROW).nonzero().flatten().to(self.rowptr.dtype)
        if rows.numel() == 0:
            return None
        return RowChunks.split(self.rowptr, rows, LONG_ROW, int(((count[rows] + LONG_ROW - 1) // LONG_ROW).sum()))

    @derived
    def chunked_rows(self) -> tuple[Tensor, Tensor]:
        """The first edge, and one past the last, of each row in `row_chunks`."""
        assert self.row_chunks is not None
        return self.rowptr[self.row_chunks.rows], self.rowptr[self.row_chunks.rows + 1]

    @derived
    def row_partition(self) -> list[int]:
        """`NUM_PARTITIONS + 1` rows, between which parts have about the same work, counting a row as one more edge."""
        work = self.rowptr.long() + torch.arange(self.num_rows + 1, device=self.rowptr.device)
        goal = torch.arange(NUM_PARTITIONS + 1, device=self.rowptr.device) * work[-1] // NUM_PARTITIONS
        return [0, *torch.searchsorted(work, goal).tolist()[1:-1], self.num_rows]

    def edges_of(self, rows: Tensor) -> Tensor:
        """The positions of all edges of `rows` `[R]`, row after row."""
        rows = rows.long()
        begin = self.rowptr[rows].long()
        count = self.rowptr[rows + 1].long() - begin
        # each edge's position among those returned, shifted to that of its row
        shift = torch.repeat_interleave(begin - count.cumsum(0) + count, count)
        return shift + torch.arange(shift.numel(), device=rows.device)

    def with_weight(self, weight: Tensor) -> Adjacency:
        """Returns the same edges with other weights `[edges]`."""
        other = replace(self, weight=weight)
        # none of these depends on the weights
        for name in ("row", "row_chunks", "row_partition"):
            other.cached(name, partial(getattr, self, name))
        return other

    def with_weight_both_ways(self, weight: Tensor) -> Adjacency:
        """Returns the same edges with other weights `[edges]`, and with their transpose. Does not synchronize."""
        other = self.with_weight(weight)
        transposed = self.transpose.with_weight(weight.index_select(0, self.inv_perm))
        other.cached("transposition", lambda: (transposed, self.inv_perm))
        return other


def inverse_permutation(order: Tensor) -> Tensor:
    """Returns the position of each number in `order` `[n]`, a permutation of the numbers below `n`."""
    positions = torch.arange(order.numel(), dtype=order.dtype, device=order.device)
    return torch.empty_like(order).index_copy(0, order.long(), positions)


def _narrow(index: Tensor, size: int) -> Tensor:
    """`index` as int32 if everything up to `size` fits."""
    return index.int() if size < 2**31 else index.long()
