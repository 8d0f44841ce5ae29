"""The adjacency of a graph in compressed rows, prepared once and used by every layer of every epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from legnn.ops.csr.build import CSR, coo_to_csr

LONG_ROW = 256
"""A row with more edges than this is summed in pieces on a GPU, or one node with a hundred thousand neighbors would
keep everybody waiting."""

SMALL_PART = 2**16
"""Below so many edges, not even one row with all of them would keep anybody waiting as long as cutting it up takes."""

PARTS = 32
"""The rows of an adjacency are cut into so many parts for the threads of a CPU, which may take several at once."""


@dataclass(frozen=True, eq=False)
class RowChunks:
    """The long rows of an adjacency, cut into pieces that are summed by themselves and then added up in order."""

    rows: Tensor
    """`[L]` the long rows."""
    pointer: Tensor
    """`[L + 1]` where the pieces of each begin."""
    owner: Tensor
    """`[P]` the row of each piece."""
    first: Tensor
    """`[P]` the first edge of each piece."""
    last: Tensor
    """`[P]` one past its last edge; `first` for a piece that is not needed."""

    @classmethod
    def cut(cls, rowptr: Tensor, rows: Tensor, length: int, most: int) -> RowChunks:
        """Cut `rows` into pieces of `length`, of which there are at most `most`. Nothing here waits for the device."""
        begin, end = rowptr[rows], rowptr[rows + 1]
        pointer = torch.zeros(rows.numel() + 1, dtype=rowptr.dtype, device=rowptr.device)
        torch.cumsum((end - begin + length - 1) // length, 0, dtype=rowptr.dtype, out=pointer[1:])
        piece = torch.arange(most, dtype=rowptr.dtype, device=rowptr.device)
        of = (torch.searchsorted(pointer, piece, right=True) - 1).clamp(max=rows.numel() - 1)
        first = torch.minimum(begin[of] + (piece - pointer[of]) * length, end[of])
        last = torch.minimum(first + length, end[of])
        return cls(rows, pointer, rows[of], first, last)


@dataclass(frozen=True, eq=False)
class Transposition:
    """The transpose of an adjacency."""

    adjacency: Adjacency
    place: Tensor
    """`[edges]` where each edge of the adjacency stands in its transpose."""

    @cached_property
    def origin(self) -> Tensor:
        """`[edges]` where each edge of the transpose stands in the adjacency."""
        return inverse_permutation(self.place)


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
        if edge_index.device.type == "cpu":
            weight = None if edge_weight is None else edge_weight.numpy()
            return cls.from_csr(coo_to_csr(target.numpy(), source.numpy(), weight, num_nodes, num_nodes), num_nodes)
        order = torch.argsort(target * num_nodes + source, stable=True)
        return cls.from_sorted(
            target[order], source[order], None if edge_weight is None else edge_weight[order], num_nodes, num_nodes
        )

    @classmethod
    def from_csr(cls, csr: CSR, num_cols: int) -> Adjacency:
        """From arrays in NumPy, which it shares."""
        weight = None if csr.weight is None else torch.from_numpy(csr.weight)
        return cls(torch.from_numpy(csr.rowptr), torch.from_numpy(csr.col), weight, num_cols)

    @classmethod
    def from_data(cls, data: Data) -> Adjacency:
        """From what `load` returned: an `edge_index`, or the compressed rows of a prepared folder as they lie there."""
        if data.get("rowptr") is None:
            return cls.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
        return cls(data.rowptr, data.col, data.get("edge_weight"), data.num_nodes)

    @classmethod
    def from_sorted(cls, row: Tensor, col: Tensor, weight: Tensor | None, num_rows: int, num_cols: int) -> Adjacency:
        """From edges already ascending by row. Indices are kept in 32 bits where they fit."""
        # a binary search for each row, not a count, which would make the host wait for the device
        rowptr = torch.searchsorted(row, torch.arange(num_rows + 1, device=row.device, dtype=row.dtype))
        return cls(_narrow(rowptr, col.numel()), _narrow(col, num_cols), weight, num_cols)

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
        return torch.repeat_interleave(counts, output_size=self.num_edges).to(self.col.dtype)

    @cached_property
    def edge_index(self) -> Tensor:
        """`[2, E]` in PyG's order (source, target)."""
        return torch.stack([self.col, self.row]).long()

    @cached_property
    def degree(self) -> Tensor:
        """`[rows]` float: the sum of the weights of the edges that come in."""
        if self.weight is None:
            return (self.rowptr[1:] - self.rowptr[:-1]).to(torch.get_default_dtype())
        return torch.segment_reduce(self.weight, "sum", offsets=self.rowptr.long(), initial=0)

    @cached_property
    def transposition(self) -> Transposition:
        """`Aᵀ`, which carries gradients back, and where its edges stand here; a symmetric graph is its own."""
        turned, place = self._turned_by_counting() if self.col.device.type == "cpu" else self.turned_by_sorting()
        return Transposition(self if self.may_be_symmetric and self._equals(turned) else turned, place)

    def turned_by_sorting(self) -> tuple[Adjacency, Tensor]:
        """The transpose, and where each edge stands in it."""
        # rows ascend, so that a stable sort by column alone leaves them ascending within a column
        col, order = self.col.sort(stable=True)
        weight = None if self.weight is None else self.weight[order]
        kind = Adjacency if self.may_be_symmetric else _TurnedRows
        turned = kind.from_sorted(col, self.row[order], weight, self.num_cols, self.num_rows)
        return turned, inverse_permutation(_narrow(order, self.num_edges))

    def _turned_by_counting(self) -> tuple[Adjacency, Tensor]:
        # numba is compiled code that not every command needs
        from legnn.ops.csr.transpose import turned

        rowptr, row, place = turned(self.rowptr, self.col, self.num_cols)
        weight = None if self.weight is None else torch.empty_like(self.weight).index_copy(0, place.long(), self.weight)
        rowptr, row = _narrow(rowptr, self.num_edges), _narrow(row, self.num_rows)
        return Adjacency(rowptr, row, weight, self.num_rows), _narrow(place, self.num_edges)

    @property
    def may_be_symmetric(self) -> bool:
        """Whether it is worth the while to compare it with its transpose."""
        return self.num_rows == self.num_cols

    @property
    def transpose(self) -> Adjacency:
        """`Aᵀ`."""
        return self.transposition.adjacency

    def _equals(self, other: Adjacency) -> bool:
        return (
            self.num_cols == other.num_cols
            and torch.equal(self.rowptr, other.rowptr)
            and torch.equal(self.col, other.col)
            and (self.weight is None or (other.weight is not None and torch.equal(self.weight, other.weight)))
        )

    @cached_property
    def pieces(self) -> RowChunks | None:
        """The long rows in pieces; None where there are none."""
        count = self.rowptr[1:] - self.rowptr[:-1]
        rows = (count > LONG_ROW).nonzero().flatten().to(self.rowptr.dtype)
        if rows.numel() == 0:
            return None
        return RowChunks.cut(self.rowptr, rows, LONG_ROW, int(((count[rows] + LONG_ROW - 1) // LONG_ROW).sum()))

    @cached_property
    def occupied(self) -> Tensor | None:
        """The rows that have an edge, where it is worth the while to visit no others; None where it is not."""
        return None

    @property
    def all_rows_in_pieces(self) -> bool:
        """Whether `pieces` has every row, not the long ones alone."""
        return False

    @cached_property
    def cuts(self) -> list[int]:
        """`PARTS + 1` rows at which to cut so that each part has about as much to do (a row counts as an edge)."""
        work = self.rowptr.long() + torch.arange(self.num_rows + 1, device=self.rowptr.device)
        goal = torch.arange(PARTS + 1, device=self.rowptr.device) * work[-1] // PARTS
        return [0, *torch.searchsorted(work, goal).tolist()[1:-1], self.num_rows]

    def with_weight(self, weight: Tensor) -> Adjacency:
        """The same edges with other weights `[edges]`."""
        other = replace(self, weight=weight)
        # how the rows are cut does not depend on the weights
        other.__dict__.update(pieces=self.pieces, cuts=self.cuts, row=self.row)
        return other

    def to(self, device: torch.device | str) -> Adjacency:
        """The same adjacency on `device`; from pinned memory without waiting."""
        weight = None if self.weight is None else self.weight.to(device, non_blocking=True)
        rowptr, col = self.rowptr.to(device, non_blocking=True), self.col.to(device, non_blocking=True)
        return Adjacency(rowptr, col, weight, self.num_cols)


@dataclass(frozen=True, eq=False)
class DrawnRows(Adjacency):
    """Some of the edges of some rows of an adjacency, within a row in the order in which they were drawn."""

    fanout: int | None = None
    """How many edges a row has at most; None where all of a row's are here."""
    edge: Tensor | None = None
    """`[edges]` which edges of the whole adjacency they are; None where nobody asked."""

    @property
    def may_be_symmetric(self) -> bool:
        """Hardly ever: on a GPU, asking would make the host wait."""
        return False

    @cached_property
    def pieces(self) -> RowChunks | None:
        """None without asking where no row can be long."""
        return None if self.fanout is not None and self.fanout <= LONG_ROW else super().pieces

    def to(self, device: torch.device | str) -> Adjacency:
        """The same rows on `device`; from pinned memory without waiting."""
        moved = super().to(device)
        edge = None if self.edge is None else self.edge.to(device, non_blocking=True)
        return DrawnRows(moved.rowptr, moved.col, moved.weight, moved.num_cols, self.fanout, edge)


class _TurnedRows(Adjacency):
    """The transpose of a part of a graph, which is used once: how many rows are long is not worth waiting for."""

    @cached_property
    def pieces(self) -> RowChunks | None:
        """As many rows as may be long, the longest of all; those among them that are not are summed twice alike."""
        most = min(self.num_edges // LONG_ROW, self.num_rows)
        if self.num_edges < SMALL_PART:
            return None
        count = self.rowptr[1:] - self.rowptr[:-1]
        rows = count.topk(most, sorted=False).indices.to(self.rowptr.dtype)
        return RowChunks.cut(self.rowptr, rows, LONG_ROW, self.num_edges // LONG_ROW + most)


def inverse_permutation(order: Tensor) -> Tensor:
    """Where each number stands in `order` `[n]`, which has every number below `n` once."""
    places = torch.arange(order.numel(), dtype=order.dtype, device=order.device)
    return torch.empty_like(order).index_copy(0, order.long(), places)


def _narrow(index: Tensor, size: int) -> Tensor:
    """`index` in 32 bits where everything below and at `size` fits."""
    return index.int() if size < 2**31 else index.long()
