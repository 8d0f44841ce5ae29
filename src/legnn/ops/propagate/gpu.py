"""Sums over the edges of each row on a GPU, in Triton, weighted and scaled.

One program sums one row, or a chunk of a long one, for one block of columns. Blocks of columns are the slow axis of the
grid: while one block is summed over all rows, most of the slice of `x` that is gathered from stays in the cache. Sums
run in the order of a row's edges, without atomics: the same input gives the same bits.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.row_chunks import RowChunks
from legnn.ops.propagate.gpu_columns import columns_of_head, cut_columns, head_vector, vectors_end
from legnn.ops.runtime.launch import fast_launch
from legnn.ops.runtime.streams import run_beside
from legnn.ops.types import RowTerms

EDGES, EDGES_IN_BF16 = 2, 4
"""Edges in flight at once in a program: as many as registers allow, in bf16 more."""
WARPS = 1
REGISTERS, MOST_COLUMNS = 64, 288
"""Of a lane, with which a multiprocessor runs as many programs of one warp as it can, 32; and for how many columns."""
MANY_LONG_ROWS = 1024
NO_LIMIT = 2**31 - 1


@triton.jit
def of_label(row, y, column, there):
    """The columns of the row of label `y`; zeros for -1, no label."""
    # kept near: the rows of neighbors, which are read in between, are not read again there
    return tl.load(row + column, mask=tl.where(y >= 0, there, False), other=0.0, eviction_policy="evict_last")


@fast_launch
@triton.jit
def _sum_rows(
    first, last, owner, col, weight, x, source_scale, target_scale, label_of, label_rows, label_scale, add, out, limit,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, BLOCKS: tl.constexpr, WIDTH: tl.constexpr, X_STRIDE: tl.constexpr,
    OUT_STRIDE: tl.constexpr, LABEL_STRIDE: tl.constexpr, ADD: tl.constexpr, ADD_STRIDE: tl.constexpr,
    ADD_COLUMNS: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr,
    INDIRECT: tl.constexpr, WEIGHT: tl.constexpr, SOURCE: tl.constexpr, TARGET: tl.constexpr, LABEL: tl.constexpr,
    LABEL_SCALE: tl.constexpr, EARLY_LABEL: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr, TAIL: tl.constexpr,
    EDGES: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    # CHANNELS and BLOCKS are those of one head; a program has WIDTH columns: BLOCK of them, and a TAIL
    program = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) // BLOCKS
    begin = tl.load(first + program)
    end = tl.load(last + program)
    row = program
    if OWNED:
        row = tl.load(owner + program).to(tl.int64)
    # numbers of the row are read with its ends: each would be waited for once more, alone
    if LABEL:
        y = tl.load(label_of + row)
        label_factor = 1.0
        if LABEL_SCALE:
            label_factor = tl.load(label_scale + row).to(tl.float32)
    if TARGET:
        scale = tl.load(target_scale + row).to(tl.float32)
    if end - begin <= limit:
        start = (tl.program_id(1) % BLOCKS) * WIDTH
        column, there = columns_of_head(head, start, CHANNELS, VECTOR, BLOCK)
        # what is read beyond the columns of the head is not stored
        read = there
        if VECTOR:
            read = column < vectors_end(head, CHANNELS, VECTOR)
        if TAIL:
            tail_within = start + BLOCK + tl.arange(0, TAIL)
            tail_there = (tail_within < CHANNELS) & (tail_within < start + WIDTH)
            tail_column = head * CHANNELS + tail_within
            tail_result = tl.zeros([TAIL], dtype=tl.float32)
        result = tl.zeros([BLOCK], dtype=tl.float32)
        # read before the edges, other terms arrive while these are summed, as far as there are registers for them
        if EARLY_LABEL:
            label_value = of_label(label_rows + y * LABEL_STRIDE, y, column, there)
            if TAIL:
                tail_label_value = of_label(label_rows + y * LABEL_STRIDE, y, tail_column, tail_there)
        if ADD:
            from_added = add + row * ADD_STRIDE
            added = tl.load(from_added + column, mask=there & (column < ADD_COLUMNS), other=0.0)
            if TAIL:
                tail_added = tl.load(from_added + tail_column, mask=tail_there & (tail_column < ADD_COLUMNS), other=0.0)
        if AHEAD:
            # numbers of the next edges are read while the rows of these are on their way
            following = (begin + tl.arange(0, EDGES)).to(tl.int64)
            next_j = tl.load(col + following, mask=following < end, other=0)
            if WEIGHT:
                next_share = tl.load(weight + following * HEADS + head, mask=following < end, other=0.0)
        for edge in range(begin, end, EDGES):
            k = (edge + tl.arange(0, EDGES)).to(tl.int64)
            inside = k < end
            j = k
            share = inside.to(tl.float32)
            if AHEAD:
                j = next_j.to(tl.int64)
                following = k + EDGES
                next_j = tl.load(col + following, mask=following < end, other=0)
                if WEIGHT:
                    share = next_share.to(tl.float32)
                    next_share = tl.load(weight + following * HEADS + head, mask=following < end, other=0.0)
            else:
                if INDIRECT:
                    j = tl.load(col + k, mask=inside, other=0).to(tl.int64)
                if WEIGHT:
                    share = tl.load(weight + k * HEADS + head, mask=inside, other=0.0).to(tl.float32)
            if SOURCE:
                share *= tl.load(source_scale + j, mask=inside, other=0.0).to(tl.float32)
            from_row = x + j[:, None] * X_STRIDE
            values = tl.load(from_row + column[None, :], mask=inside[:, None] & read[None, :], other=0.0)
            # added up at once: a sum for each edge in flight would take the registers of more edges
            result += tl.sum(share[:, None] * values.to(tl.float32), 0)
            if TAIL:
                values = tl.load(from_row + tail_column[None, :], mask=inside[:, None] & tail_there[None, :], other=0.0)
                tail_result += tl.sum(share[:, None] * values.to(tl.float32), 0)
        to = row
        if PARTIAL:
            to = program
        if TARGET:
            result *= scale
            if TAIL:
                tail_result *= scale
        if LABEL and not EARLY_LABEL:
            label_value = of_label(label_rows + y * LABEL_STRIDE, y, column, there)
            if TAIL:
                tail_label_value = of_label(label_rows + y * LABEL_STRIDE, y, tail_column, tail_there)
        if LABEL:
            result += label_factor * label_value.to(tl.float32)
            if TAIL:
                tail_result += label_factor * tail_label_value.to(tl.float32)
        if ADD:
            result += added.to(tl.float32)
            if TAIL:
                tail_result += tail_added.to(tl.float32)
        to_row = out + to * OUT_STRIDE
        tl.store(to_row + column, result.to(out.dtype.element_ty), mask=there)
        if TAIL:
            tl.store(to_row + tail_column, tail_result.to(out.dtype.element_ty), mask=tail_there)


class RowSpans(NamedTuple):
    """The rows, or chunks of rows, of one launch, which has a program for each."""

    first: Tensor
    """`[size]` the first edge of each."""
    last: Tensor
    """`[size]` one past its last edge."""
    owner: Tensor | None
    """`[size]` which row each is; None for all rows in order."""
    size: int
    limit: int = NO_LIMIT
    """Longer rows are skipped."""


def whole_rows(adjacency: Adjacency, *, occupied: bool = False) -> list[RowSpans]:
    """What to launch over whole rows: one launch, or none. With `occupied`, rows without an edge may be left out."""
    rowptr = adjacency.rowptr
    if adjacency.all_rows_chunked or adjacency.num_rows == 0:
        return []
    if occupied and adjacency.nonempty_rows is not None:
        rows = adjacency.nonempty_rows
        return [RowSpans(*adjacency.nonempty_spans, rows, rows.numel())] if rows.numel() else []
    limit = NO_LIMIT if adjacency.row_chunks is None else adjacency.row_chunks.length
    return [RowSpans(rowptr, rowptr[1:], None, adjacency.num_rows, limit)]


def chunk_spans(chunks: RowChunks) -> RowSpans:
    """What to launch over the chunks of long rows."""
    return RowSpans(chunks.first, chunks.last, chunks.owner, chunks.owner.numel())


def row_stride(x: Tensor | None) -> int:
    """`x.stride(0)`, 0 for None."""
    return 0 if x is None else x.stride(0)


def _launch(
    rows: RowSpans, col: Tensor | None, weight: Tensor | None, x: Tensor, channels: int, out: Tensor, terms: RowTerms,
    *, heads: int = 1, partial: bool = False, edges: int | None = None,
) -> None:  # fmt: skip
    if edges is None:
        edges = EDGES_IN_BF16 if x.dtype == torch.bfloat16 else EDGES
    blocks, width, block, tail = cut_columns(channels // heads)
    vector = head_vector(x, channels, heads)
    if vector:
        block, tail = triton.next_power_of_2(width + vector), 0
    # of bf16 without heads, its registers would be missed
    ahead = col is not None and (heads > 1 or x.dtype != torch.bfloat16)
    # told how many there are, the compiler has more rows in flight beside what is read ahead
    most = {"maxnreg": REGISTERS} if ahead and not partial and block + tail <= MOST_COLUMNS else {}
    _sum_rows[(rows.size, heads * blocks)](
        rows.first, rows.last, rows.owner, col, weight, x, *terms, out, rows.limit,
        HEADS=heads, CHANNELS=channels // heads, BLOCKS=blocks, WIDTH=width, X_STRIDE=x.stride(0),
        OUT_STRIDE=out.stride(0), LABEL_STRIDE=row_stride(terms.label_rows), ADD=terms.add is not None,
        ADD_STRIDE=row_stride(terms.add), ADD_COLUMNS=0 if terms.add is None else terms.add.size(1),
        OWNED=rows.owner is not None, PARTIAL=partial, INDIRECT=col is not None, WEIGHT=weight is not None,
        SOURCE=terms.source_scale is not None, TARGET=terms.target_scale is not None,
        LABEL=terms.label_of is not None, LABEL_SCALE=terms.label_scale is not None,
        # of float32, and beside what is read ahead, its registers would be missed
        EARLY_LABEL=terms.label_of is not None and x.dtype == torch.bfloat16 and heads == 1,
        VECTOR=vector, BLOCK=block, TAIL=tail, EDGES=edges, AHEAD=ahead, num_warps=WARPS, **most,
    )  # fmt: skip


def sum_whole_rows(
    adjacency: Adjacency, rows: RowSpans, x: Tensor, channels: int, out: Tensor, terms: RowTerms,
    weight: Tensor | None, heads: int,
) -> None:  # fmt: skip
    """Sums the first `channels` columns of `x` over the edges of `rows` into `out`.

    `weight` `[edges, heads]` is the factor of each edge, or None; of a head, the columns are side by side.
    """
    _launch(rows, adjacency.col, weight, x, channels, out, terms, heads=heads)


def sum_long_rows(
    adjacency: Adjacency, chunks: RowChunks, x: Tensor, channels: int, out: Tensor, terms: RowTerms,
    weight: Tensor | None, heads: int,
) -> None:  # fmt: skip
    """`sum_whole_rows` of the rows in `chunks`."""
    partial = torch.empty(chunks.owner.numel(), channels, dtype=torch.float32, device=x.device)
    of_chunks = RowTerms(terms.source_scale)
    _launch(chunk_spans(chunks), adjacency.col, weight, x, channels, partial, of_chunks, heads=heads, partial=True)
    sum_chunks(chunks, partial, out, terms._replace(source_scale=None))


def run_by_length(
    adjacency: Adjacency, x: Tensor, whole: Callable[[RowSpans], None], long: Callable[[RowChunks], None],
    *, occupied: bool = False,
) -> None:  # fmt: skip
    """Launches `whole` over the rows that are not cut, and `long` over the chunks of the others beside it."""
    spans, chunks = whole_rows(adjacency, occupied=occupied), adjacency.row_chunks
    if spans and chunks is not None:
        run_beside(x, lambda: whole(spans[0]), lambda: long(chunks))
    elif spans:
        whole(spans[0])
    elif chunks is not None:
        long(chunks)


def sum_rows(adjacency: Adjacency, x: Tensor, terms: RowTerms = RowTerms()) -> Tensor:
    """See `PropagateKernels`."""
    out = x.new_empty(adjacency.num_rows, x.size(1))
    how = x, x.size(1), out, terms, adjacency.weight, 1
    if out.numel():
        run_by_length(
            adjacency, x, lambda rows: sum_whole_rows(adjacency, rows, *how),
            lambda chunks: sum_long_rows(adjacency, chunks, *how),
        )  # fmt: skip
    return out


def sum_chunks(chunks: RowChunks, partial: Tensor, into: Tensor, terms: RowTerms = RowTerms()) -> None:
    """Adds up the chunks of every long row, `partial` `[P, D]`, into its row of `into`."""
    rows = RowSpans(chunks.pointer, chunks.pointer[1:], chunks.rows, chunks.rows.numel())
    # with many rows the longest, of hundreds of chunks, is what takes time
    edges = 8 if rows.size >= MANY_LONG_ROWS else EDGES
    _launch(rows, None, None, partial, partial.size(1), into, terms, edges=edges)


@fast_launch
@triton.jit
def _add_label_rows(
    x, shown, y, rows, count, STRIDE: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = place < count
    row = tl.load(shown + place, mask=inside, other=0).to(tl.int64)
    label = tl.load(y + place, mask=inside, other=0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = inside[:, None] & (column < COLUMNS)[None, :]
    to = x + row[:, None] * STRIDE + column[None, :]
    value = tl.load(to, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(rows + label[:, None] * COLUMNS + column[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(to, value.to(x.dtype.element_ty), mask=mask)


def add_label_rows(x: Tensor, shown: Tensor, y: Tensor, rows: Tensor) -> None:
    """See `PropagateKernels`."""
    if shown.numel():
        _add_label_rows[(triton.cdiv(shown.numel(), 4), triton.cdiv(rows.size(1), 256))](
            x, shown, y, rows, shown.numel(), STRIDE=x.size(1), COLUMNS=rows.size(1), ROWS=4, BLOCK=256, num_warps=4
        )
