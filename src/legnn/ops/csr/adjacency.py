"""The adjacency of a graph as CSR, built once and used by every layer in every epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from legnn.ops.csr.build import CSR, SMALL, coo_to_csr
from legnn.ops.csr.row_chunks import LONG_ROW, LONG_SAMPLED_ROW, RowChunks
from legnn.ops.csr.transposition import Transposition, inverse_permutation

T = TypeVar("T", bound=Any)

FEW_EDGES = 2**16
"""With fewer edges than this, summing even one row of all of them takes less time than splitting it."""

PARTS = 32
"""Parts of the rows with about the same work, among which the threads of a CPU choose."""


@dataclass(frozen=True, eq=False)
class Adjacency:
    """`A` as CSR: row `i` holds the sources `j` of the edges `j → i`, so that `(A x)_i = Σ_j A_ij x_j`.

    PyG's `edge_index` is `[source, target]`; here targets are rows, and sources are columns. An edge of weight 2 counts
    as two edges, in every backbone. Parallel edges are kept.
    """

    rowptr: Tensor
    """`[rows + 1]`, the position of each row's first edge."""
    col: Tensor
    """`[edges]`, the source of each edge, ascending within a row."""
    weight: Tensor | None
    """`[edges]`, positive, or None if every edge weighs 1."""
    num_cols: int

    @classmethod
    def from_edge_index(cls, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Adjacency:
        """From PyG's `edge_index` `[2, E]` (source, target) and optional `edge_weight` `[E]`."""
        source, target = edge_index
        if edge_index.device.type == "cpu":
            weight = None if edge_weight is None else edge_weight.numpy()
            return cls.from_csr(coo_to_csr(target.numpy(), source.numpy(), weight, num_nodes, num_nodes), num_nodes)
        order = torch.argsort(target * num_nodes + source, stable=True)
        return cls.from_sorted(
            target[order], source[order], None if edge_weight is None else edge_weight[order], num_nodes, num_nodes
        )

    @classmethod
    def from_csr(cls, csr: CSR, num_cols: int) -> Adjacency:
        """From NumPy arrays, whose memory it shares."""
        weight = None if csr.weight is None else torch.from_numpy(csr.weight)
        return cls(torch.from_numpy(csr.rowptr), torch.from_numpy(csr.col), weight, num_cols)

    @classmethod
    def from_sorted(cls, row: Tensor, col: Tensor, weight: Tensor | None, num_rows: int, num_cols: int) -> Adjacency:
        """From edges that ascend by row. Indices become int32 if they fit. Does not synchronize."""
        # a binary search for each row, not `bincount`, which synchronizes
        rowptr = torch.searchsorted(row, torch.arange(num_rows + 1, device=row.device, dtype=row.dtype))
        return cls(_narrow(rowptr, col.numel()), _narrow(col, num_cols), weight, num_cols)

    @property
    def num_rows(self) -> int:
        """Number of targets."""
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of edges, self-loops included."""
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """`[edges]`, the target of each edge."""
        counts = self.rowptr[1:] - self.rowptr[:-1]
        return torch.repeat_interleave(counts, output_size=self.num_edges).to(self.col.dtype)

    @cached_property
    def edge_index(self) -> Tensor:
        """`[2, E]` in PyG's order (source, target)."""
        return torch.stack([self.col, self.row]).long()

    @cached_property
    def degree(self) -> Tensor:
        """`[rows]` float: the sum of the weights of a row."""
        if self.weight is None:
            return (self.rowptr[1:] - self.rowptr[:-1]).to(torch.get_default_dtype())
        return torch.segment_reduce(self.weight, "sum", offsets=self.rowptr.long(), initial=0)

    @property
    def transpose(self) -> Adjacency:
        """`Aᵀ`."""
        return self.transposition.adjacency

    @cached_property
    def transposition(self) -> Transposition:
        """`Aᵀ`, along which gradients are passed back; `A` itself if it is symmetric."""
        on_cpu = self.col.device.type == "cpu"
        # of a small graph sorting takes milliseconds, once, where compiling the kernels takes half a second
        counts = on_cpu and (self.is_sample or self.num_edges >= SMALL)
        transposed, place = self.transpose_by_counting() if counts else self.transpose_by_sorting()
        if self.may_be_symmetric and self._equals(transposed):
            return Transposition(self, place, is_symmetric=True)
        return Transposition(transposed, place)

    def transpose_by_sorting(self) -> tuple[Adjacency, Tensor]:
        """Returns the transpose, and the position of each edge in it. Does not synchronize."""
        # rows ascend, so that a stable sort by column alone leaves them ascending within a column
        col, order = self.col.sort(stable=True)
        weight = None if self.weight is None else self.weight[order]
        kind = Adjacency if self.may_be_symmetric else _TransposedSample
        transposed = kind.from_sorted(col, self.row[order], weight, self.num_cols, self.num_rows)
        return transposed, inverse_permutation(_narrow(order, self.num_edges))

    def transpose_by_counting(self) -> tuple[Adjacency, Tensor]:
        """Returns the same, on a CPU."""
        # not every command needs numba, which takes a moment to import
        from legnn.ops.csr.transpose import transpose_csr

        rowptr, row, place = transpose_csr(self.rowptr, self.col, self.num_cols)
        weight = None if self.weight is None else torch.empty_like(self.weight).index_copy(0, place.long(), self.weight)
        rowptr, row = _narrow(rowptr, self.num_edges), _narrow(row, self.num_rows)
        return Adjacency(rowptr, row, weight, self.num_rows), _narrow(place, self.num_edges)

    @property
    def is_sample(self) -> bool:
        """Whether it is one of many that steps read once."""
        return False

    @property
    def may_be_symmetric(self) -> bool:
        """Whether to compare it with its transpose."""
        return self.num_rows == self.num_cols

    def _equals(self, other: Adjacency) -> bool:
        return (
            self.num_cols == other.num_cols
            and torch.equal(self.rowptr, other.rowptr)
            and torch.equal(self.col, other.col)
            and (self.weight is None or (other.weight is not None and torch.equal(self.weight, other.weight)))
        )

    @cached_property
    def row_chunks(self) -> RowChunks | None:
        """The rows longer than `LONG_ROW` in chunks; None if there are none."""
        count = self.rowptr[1:] - self.rowptr[:-1]
        rows = (count > LONG_ROW).nonzero().flatten().to(self.rowptr.dtype)
        if rows.numel() == 0:
            return None
        return RowChunks.split(self.rowptr, rows, LONG_ROW, int(((count[rows] + LONG_ROW - 1) // LONG_ROW).sum()))

    @cached_property
    def chunked_rows(self) -> tuple[Tensor, Tensor]:
        """The first edge, and one past the last, of each row in `row_chunks`."""
        assert self.row_chunks is not None
        return self.rowptr[self.row_chunks.rows], self.rowptr[self.row_chunks.rows + 1]

    @property
    def all_rows_chunked(self) -> bool:
        """Whether `row_chunks` holds every row, and not the long ones only."""
        return False

    @cached_property
    def nonempty_rows(self) -> Tensor | None:
        """The rows that have an edge, if most rows have none and kernels should skip these; else None."""
        return None

    @cached_property
    def nonempty_spans(self) -> tuple[Tensor, Tensor]:
        """The first edge, and one past the last, of each of `nonempty_rows`."""
        assert self.nonempty_rows is not None
        return self.rowptr[self.nonempty_rows], self.rowptr[self.nonempty_rows + 1]

    @cached_property
    def cuts(self) -> list[int]:
        """`PARTS + 1` rows between which the parts have about the same work, counting a row as one more edge."""
        work = self.rowptr.long() + torch.arange(self.num_rows + 1, device=self.rowptr.device)
        goal = torch.arange(PARTS + 1, device=self.rowptr.device) * work[-1] // PARTS
        return [0, *torch.searchsorted(work, goal).tolist()[1:-1], self.num_rows]

    def with_weight(self, weight: Tensor) -> Adjacency:
        """Returns the same edges with other weights `[edges]`."""
        other = replace(self, weight=weight)
        # none of these depends on the weights
        other.__dict__.update(row_chunks=self.row_chunks, cuts=self.cuts, row=self.row)
        return other

    def with_weight_both_ways(self, weight: Tensor) -> Adjacency:
        """Returns the same edges with other weights `[edges]`, and with their transpose. Does not synchronize."""
        other, way_back = self.with_weight(weight), self.transposition
        transposed = way_back.adjacency.with_weight(weight.index_select(0, way_back.origin))
        other.__dict__["transposition"] = Transposition(transposed, way_back.place)
        return other

    def to(self, device: torch.device | str) -> Adjacency:
        """Returns the adjacency on `device`; from pinned memory without synchronizing."""
        return move_tensors(self, device)


@dataclass(frozen=True, eq=False)
class SampledAdjacency(Adjacency):
    """Some of the edges of some rows of an adjacency, within a row in the order in which they were drawn."""

    fanout: int | None = None
    """The largest number of edges in a row; None if all edges of the rows are here."""
    edge: Tensor | None = None
    """`[edges]` the position of each edge in the whole adjacency; None if not requested."""

    @property
    def is_sample(self) -> bool:
        """True."""
        return True

    @property
    def may_be_symmetric(self) -> bool:
        """False: a sample hardly ever is, and comparing would synchronize."""
        return False

    @cached_property
    def row_chunks(self) -> RowChunks | None:
        """None, without synchronizing, if no row can be long."""
        return None if self.fanout is not None and self.fanout <= LONG_SAMPLED_ROW else super().row_chunks


class _TransposedSample(Adjacency):
    """The transpose of a sample, which is used once: not worth synchronizing to count its long rows."""

    @cached_property
    def row_chunks(self) -> RowChunks | None:
        """The longest rows, as many as may be long; a row among them that is not is summed twice, to the same sum."""
        if self.num_edges < FEW_EDGES:
            return None
        most = min(self.num_edges // LONG_SAMPLED_ROW, self.num_rows)
        count = self.rowptr[1:] - self.rowptr[:-1]
        rows = count.topk(most, sorted=False).indices.to(self.rowptr.dtype)
        return RowChunks.split(self.rowptr, rows, LONG_SAMPLED_ROW, self.num_edges // LONG_SAMPLED_ROW + most)


def map_tensors(item: T, function: Callable[[Tensor], Tensor]) -> T:
    """Returns `item`, of dataclasses, tuples and tensors, anew with `function` of its tensors, called in a fixed order.

    What was cached of its dataclasses is not in the new ones.
    """
    if isinstance(item, Tensor):
        return cast(T, function(item))
    if is_dataclass(item) and not isinstance(item, type):
        return replace(item, **{part.name: map_tensors(getattr(item, part.name), function) for part in fields(item)})
    if isinstance(item, tuple | list):
        parts = [map_tensors(part, function) for part in item]
        return type(item)(*parts) if hasattr(item, "_fields") else type(item)(parts)
    return item


def move_tensors(item: T, device: torch.device | str) -> T:
    """Returns the dataclass `item` with its tensors on `device`; from pinned memory without synchronizing."""
    values = {field.name: getattr(item, field.name) for field in fields(item)}
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    return replace(item, **{name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()})


def _narrow(index: Tensor, size: int) -> Tensor:
    """`index` as int32 if everything up to `size` fits."""
    return index.int() if size < 2**31 else index.long()
