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
from legnn.ops.types import RowTerms

EDGES, EDGES_IN_BF16 = 2, 4
"""Edges in flight at once in a program: as many as registers allow, in bf16 more."""
WARPS = 1
BLOCK = 256
"""Columns of one program: each lane of a warp reads four numbers at once, twice."""
REGISTERS, MOST_COLUMNS = 64, 288
"""Registers of a lane with which a multiprocessor runs 32 programs of one warp; and for how many columns."""
MANY_LONG_ROWS = 1024
NO_LIMIT = 2**31 - 1


@triton.jit
def of_label(row, y, column, in_head):
    """The columns of the row of label `y`; zeros for -1, no label."""
    # kept near: the rows of neighbors, which are read in between, are not read again there
    return tl.load(row + column, mask=tl.where(y >= 0, in_head, False), other=0.0, eviction_policy="evict_last")


@triton.jit
def _sum_rows(
    first, last, owner, col, weight, x, source_scale, target_scale, label_of, label_rows, label_scale, add, out, limit,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, BLOCKS: tl.constexpr, WIDTH: tl.constexpr, X_STRIDE: tl.constexpr,
    OUT_STRIDE: tl.constexpr, LABEL_STRIDE: tl.constexpr, ADD: tl.constexpr, ADD_STRIDE: tl.constexpr,
    ADD_COLUMNS: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr,
    INDIRECT: tl.constexpr, WEIGHT: tl.constexpr, SOURCE: tl.constexpr, TARGET: tl.constexpr, LABEL: tl.constexpr,
    LABEL_SCALE: tl.constexpr, EARLY_LABEL: tl.constexpr, BLOCK: tl.constexpr, TAIL: tl.constexpr,
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
        within = start + tl.arange(0, BLOCK)
        in_head = within < CHANNELS
        column = head * CHANNELS + within
        if TAIL:
            tail_within = start + BLOCK + tl.arange(0, TAIL)
            in_tail = (tail_within < CHANNELS) & (tail_within < start + WIDTH)
            tail_column = head * CHANNELS + tail_within
            tail_result = tl.zeros([TAIL], dtype=tl.float32)
        result = tl.zeros([BLOCK], dtype=tl.float32)
        # read before the edges, other terms arrive while these are summed, as far as there are registers for them
        if EARLY_LABEL:
            label_value = of_label(label_rows + y * LABEL_STRIDE, y, column, in_head)
            if TAIL:
                tail_label_value = of_label(label_rows + y * LABEL_STRIDE, y, tail_column, in_tail)
        if ADD:
            from_added = add + row * ADD_STRIDE
            added = tl.load(from_added + column, mask=in_head & (column < ADD_COLUMNS), other=0.0)
            if TAIL:
                tail_added = tl.load(from_added + tail_column, mask=in_tail & (tail_column < ADD_COLUMNS), other=0.0)
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
            values = tl.load(from_row + column[None, :], mask=inside[:, None] & in_head[None, :], other=0.0)
            # added up at once: a sum for each edge in flight would take the registers of more edges
            result += tl.sum(share[:, None] * values.to(tl.float32), 0)
            if TAIL:
                values = tl.load(from_row + tail_column[None, :], mask=inside[:, None] & in_tail[None, :], other=0.0)
                tail_result += tl.sum(share[:, None] * values.to(tl.float32), 0)
        to = row
        if PARTIAL:
            to = program
        if TARGET:
            result *= scale
            if TAIL:
                tail_result *= scale
        if LABEL and not EARLY_LABEL:
            label_value = of_label(label_rows + y * LABEL_STRIDE, y, column, in_head)
            if TAIL:
                tail_label_value = of_label(label_rows + y * LABEL_STRIDE, y, tail_column, in_tail)
        if LABEL:
            result += label_factor * label_value.to(tl.float32)
            if TAIL:
                tail_result += label_factor * tail_label_value.to(tl.float32)
        if ADD:
            result += added.to(tl.float32)
            if TAIL:
                tail_result += tail_added.to(tl.float32)
        to_row = out + to * OUT_STRIDE
        tl.store(to_row + column, result.to(out.dtype.element_ty), mask=in_head)
        if TAIL:
            tl.store(to_row + tail_column, tail_result.to(out.dtype.element_ty), mask=in_tail)


def cut_columns(columns: int) -> tuple[int, int, int, int]:
    """Number of parts of the columns, and their width as a power of 2 and a tail.

    Triton's vectors have a power of 2 of numbers. 544 columns in three vectors of 256 would leave most of the last
    empty; in two of 256 + 16 nothing is.
    """
    blocks = max(columns // BLOCK, 1)
    width = columns if blocks == 1 else 8 * triton.cdiv(columns, 8 * blocks)
    block = 1 << (width.bit_length() - 1)
    return blocks, width, block, triton.next_power_of_2(width - block) if width > block else 0


class Programs(NamedTuple):
    """The programs of one launch: each has a row, or a chunk of one."""

    first: Tensor
    """`[size]` the first edge of each."""
    last: Tensor
    """`[size]` one past its last edge."""
    owner: Tensor | None
    """`[size]` which row each is; None for all rows in order."""
    size: int
    limit: int = NO_LIMIT
    """Longer rows are skipped."""
    partial: bool = False
    """Whether each program writes a row of the output by its own number: the sum of a chunk."""


def row_stride(x: Tensor | None) -> int:
    """`x.stride(0)`, 0 for None."""
    return 0 if x is None else x.stride(0)


def _launch(
    rows: Programs, col: Tensor | None, weight: Tensor | None, heads: int, x: Tensor, out: Tensor, terms: RowTerms,
    edges: int | None = None,
) -> None:  # fmt: skip
    if edges is None:
        edges = EDGES_IN_BF16 if x.dtype == torch.bfloat16 else EDGES
    channels = out.size(1)
    blocks, width, block, tail = cut_columns(channels // heads)
    # of bf16 without heads, its registers would be missed
    ahead = col is not None and (heads > 1 or x.dtype != torch.bfloat16)
    # told how many there are, the compiler has more rows in flight beside what is read ahead
    most = {"maxnreg": REGISTERS} if ahead and not rows.partial and block + tail <= MOST_COLUMNS else {}
    _sum_rows[(rows.size, heads * blocks)](
        rows.first, rows.last, rows.owner, col, weight, x, *terms, out, rows.limit,
        HEADS=heads, CHANNELS=channels // heads, BLOCKS=blocks, WIDTH=width, X_STRIDE=x.stride(0),
        OUT_STRIDE=out.stride(0), LABEL_STRIDE=row_stride(terms.label_rows), ADD=terms.add is not None,
        ADD_STRIDE=row_stride(terms.add), ADD_COLUMNS=0 if terms.add is None else terms.add.size(1),
        OWNED=rows.owner is not None, PARTIAL=rows.partial, INDIRECT=col is not None, WEIGHT=weight is not None,
        SOURCE=terms.source_scale is not None, TARGET=terms.target_scale is not None,
        LABEL=terms.label_of is not None, LABEL_SCALE=terms.label_scale is not None,
        # of float32, and beside what is read ahead, its registers would be missed
        EARLY_LABEL=terms.label_of is not None and x.dtype == torch.bfloat16 and heads == 1,
        BLOCK=block, TAIL=tail, EDGES=edges, AHEAD=ahead, num_warps=WARPS, **most,
    )  # fmt: skip


def launch_short_and_long_rows(
    adjacency: Adjacency, whole: Callable[[Programs], None], long: Callable[[RowChunks], None]
) -> None:
    """Launches `whole` over the rows that are not cut, and `long` over the chunks of the others."""
    rowptr, chunks = adjacency.rowptr, adjacency.row_chunks
    if adjacency.num_rows > 0 and adjacency.chunking != "all":
        limit = NO_LIMIT if chunks is None else chunks.length
        whole(Programs(rowptr, rowptr[1:], None, adjacency.num_rows, limit))
    if chunks is not None:
        long(chunks)


def launch_rows(
    adjacency: Adjacency, launch: Callable[[Programs, Tensor], None], into: Tensor, terms: RowTerms = RowTerms()
) -> None:
    """Launches the rows that are not cut, to write to `into`, and the chunks of the others, then added up into it.

    Args:
        launch: over programs, and the matrix to write to.
        terms: of the sum of the chunks.
    """

    def long(chunks: RowChunks) -> None:
        partial = torch.empty(chunks.owner.numel(), into.size(1), dtype=torch.float32, device=into.device)
        launch(Programs(chunks.first, chunks.last, chunks.owner, chunks.owner.numel(), partial=True), partial)
        rows = Programs(chunks.pointer, chunks.pointer[1:], chunks.rows, chunks.rows.numel())
        # with many rows the longest, of hundreds of chunks, is what takes time
        _launch(rows, None, None, 1, partial, into, terms, edges=8 if rows.size >= MANY_LONG_ROWS else EDGES)

    launch_short_and_long_rows(adjacency, lambda rows: launch(rows, into), long)


def sum_rows(adjacency: Adjacency, x: Tensor, terms: RowTerms = RowTerms()) -> Tensor:
    """As in `cpu`."""
    out = x.new_empty(adjacency.num_rows, x.size(1))
    if out.numel():
        sum_heads(adjacency, adjacency.weight, 1, x, x.size(1), terms, out)
    return out


def sum_heads(
    adjacency: Adjacency, weight: Tensor | None, heads: int, x: Tensor, channels: int, terms: RowTerms, out: Tensor
) -> None:
    """As in `cpu`."""

    def launch(rows: Programs, to: Tensor) -> None:
        terms_of_rows = RowTerms(terms.source_scale) if rows.partial else terms
        _launch(rows, adjacency.col, weight, heads, x, to, terms_of_rows)

    launch_rows(adjacency, launch, out[:, :channels], terms._replace(source_scale=None))
