"""Passes over the scores of the edges on a GPU, in Triton: a number for each edge and head.

The lanes of a program are edges and heads here, those of several rows. What reads whole rows of features
(`triton_kernels`) has one row to a program and its columns as lanes: each of them would compute the number of an edge.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.row_chunks import RowChunks
from legnn.ops.propagate.triton_kernels import RowSpans, chunk_spans, run_by_length, sum_chunks
from legnn.ops.runtime.launch import launched
from legnn.ops.types import AttentionInputs

ROWS, EDGES = 8, 16
"""Rows of a program, and edges of each that it reads at once."""
LONG_EDGES = 1024
"""Edges that a program reads at once of a row that is not cut into chunks, however long it is."""


@triton.jit
def _leaky(score, slope):
    return tl.where(score > 0, score, score * slope)


@triton.jit
def _spans(first, last, owner, size, limit, OWNED: tl.constexpr, ROWS: tl.constexpr):
    """The spans of a program, which of them it has, their rows, and their first and last edges."""
    span = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = span < size
    begin = tl.load(first + span, mask=here, other=0)
    end = tl.load(last + span, mask=here, other=0)
    here = here & (end - begin <= limit)
    row = span.to(tl.int64)
    if OWNED:
        row = tl.load(owner + span, mask=here, other=0).to(tl.int64)
    return span, here, row, begin, tl.where(here, end, begin)


@launched
@triton.jit
def _log_denominator(
    first, last, owner, col, weight, source, target, out, size, limit, slope,
    HEADS: tl.constexpr, OWNED: tl.constexpr, WEIGHT: tl.constexpr, TARGET_SCORE: tl.constexpr,
    HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    _, here, row, begin, end = _spans(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    mine = here[:, None] & (head < HEADS)[None, :]
    target_score = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    if TARGET_SCORE:
        target_score = tl.load(target + row[:, None] * HEADS + head[None, :], mask=mine, other=0.0)
    largest = tl.full([ROWS, HEADS_BLOCK], float("-inf"), dtype=tl.float32)
    total = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    for start in range(0, tl.max(end - begin, 0), EDGES):
        k = begin[:, None] + start + tl.arange(0, EDGES)[None, :]
        inside = k < end[:, None]
        j = tl.load(col + k, mask=inside, other=0).to(tl.int64)
        both = inside[:, :, None] & (head < HEADS)[None, None, :]
        score = tl.load(source + j[:, :, None] * HEADS + head[None, None, :], mask=both, other=0.0)
        score = _leaky(score + target_score[:, None, :], slope)
        if WEIGHT:
            score += tl.log(tl.load(weight + k, mask=inside, other=1.0).to(tl.float32))[:, :, None]
        score = tl.where(inside[:, :, None], score, float("-inf"))
        top = tl.maximum(largest, tl.max(score, 1))
        # a row that has ended has only -inf, and one without edges nothing else
        shift = tl.where(top == float("-inf"), 0.0, top)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(score - shift[:, None, :]), 1)
        largest = top
    result = tl.where(total > 0, largest + tl.log(total), float("-inf"))
    tl.store(out + row[:, None] * HEADS + head[None, :], result, mask=mine)


@launched
@triton.jit
def _edge_weights(
    first, last, owner, col, weight, of_row, of_col, log_denominator, scale, out, size, limit, slope,
    HEADS: tl.constexpr, OWNED: tl.constexpr, WEIGHT: tl.constexpr, OF_ROW: tl.constexpr, OF_COL: tl.constexpr,
    ROWS_ATTEND: tl.constexpr, SCALE: tl.constexpr, HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    _, here, row, begin, end = _spans(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    mine = here[:, None] & (head < HEADS)[None, :]
    at_row = row[:, None] * HEADS + head[None, :]
    row_score = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    if OF_ROW:
        row_score = tl.load(of_row + at_row, mask=mine, other=0.0)
    if ROWS_ATTEND:
        row_log = tl.load(log_denominator + at_row, mask=mine, other=0.0)
    for start in range(0, tl.max(end - begin, 0), EDGES):
        k = (begin[:, None] + start + tl.arange(0, EDGES)[None, :]).to(tl.int64)
        inside = k < end[:, None]
        j = tl.load(col + k, mask=inside, other=0).to(tl.int64)
        both = inside[:, :, None] & (head < HEADS)[None, None, :]
        at_col = j[:, :, None] * HEADS + head[None, None, :]
        score = tl.zeros([ROWS, EDGES, HEADS_BLOCK], dtype=tl.float32) + row_score[:, None, :]
        if OF_COL:
            score += tl.load(of_col + at_col, mask=both, other=0.0)
        if ROWS_ATTEND:
            share = tl.exp(_leaky(score, slope) - row_log[:, None, :])
        else:
            share = tl.exp(_leaky(score, slope) - tl.load(log_denominator + at_col, mask=both, other=0.0))
        if WEIGHT:
            share *= tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)[:, :, None]
        if SCALE:
            share *= tl.load(scale + j, mask=inside, other=0.0).to(tl.float32)[:, :, None]
        tl.store(out + k[:, :, None] * HEADS + head[None, None, :], share, mask=both)


@launched
@triton.jit
def _sum_edges(
    first, last, owner, place, x, out, size, limit,
    HEADS: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr,
    EDGES: tl.constexpr,
):  # fmt: skip
    span, here, row, begin, end = _spans(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    total = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    for start in range(0, tl.max(end - begin, 0), EDGES):
        k = begin[:, None] + start + tl.arange(0, EDGES)[None, :]
        inside = k < end[:, None]
        at = tl.load(place + k, mask=inside, other=0).to(tl.int64)
        both = inside[:, :, None] & (head < HEADS)[None, None, :]
        total += tl.sum(tl.load(x + at[:, :, None] * HEADS + head[None, None, :], mask=both, other=0.0), 1)
    to = row
    if PARTIAL:
        to = span.to(tl.int64)
    tl.store(out + to[:, None] * HEADS + head[None, :], total, mask=here[:, None] & (head < HEADS)[None, :])


@launched
@triton.jit
def _score_gradient(
    first, last, owner, col, weight, source, target, log_denominator, dot, product, edge_gradient, out, size, limit,
    slope, stride,
    HEADS: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, ADD: tl.constexpr, WEIGHT: tl.constexpr,
    TARGET_SCORE: tl.constexpr, HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    span, here, row, begin, end = _spans(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    mine = here[:, None] & (head < HEADS)[None, :]
    own = tl.load(source + row[:, None] * HEADS + head[None, :], mask=mine, other=0.0)
    total = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    for start in range(0, tl.max(end - begin, 0), EDGES):
        k = (begin[:, None] + start + tl.arange(0, EDGES)[None, :]).to(tl.int64)
        inside = k < end[:, None]
        i = tl.load(col + k, mask=inside, other=0).to(tl.int64)
        both = inside[:, :, None] & (head < HEADS)[None, None, :]
        at_col = i[:, :, None] * HEADS + head[None, None, :]
        score = tl.zeros([ROWS, EDGES, HEADS_BLOCK], dtype=tl.float32) + own[:, None, :]
        if TARGET_SCORE:
            score += tl.load(target + at_col, mask=both, other=0.0)
        share = tl.exp(_leaky(score, slope) - tl.load(log_denominator + at_col, mask=both, other=0.0))
        if WEIGHT:
            share *= tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)[:, :, None]
        at_edge = k[:, :, None] * HEADS + head[None, None, :]
        change = tl.load(product + at_edge, mask=both, other=0.0) - share * tl.load(dot + at_col, mask=both, other=0.0)
        change = tl.where(both, change * tl.where(score > 0, 1.0, slope), 0.0)
        tl.store(edge_gradient + at_edge, change, mask=both)
        total += tl.sum(change, 1)
    to = row
    if PARTIAL:
        to = span.to(tl.int64)
    to_row = out + to[:, None] * stride + head[None, :]
    if ADD:
        total += tl.load(to_row, mask=mine, other=0.0).to(tl.float32)
    tl.store(to_row, total.to(out.dtype.element_ty), mask=mine)


def _tile(rows: RowSpans, heads: int, *, edges: int = EDGES) -> dict[str, int | bool]:
    """What every pass is launched with: whole programs of short rows, or one long row to each."""
    block = triton.next_power_of_2(heads)
    size = ROWS if edges == EDGES else 1
    return {"HEADS": heads, "OWNED": rows.owner is not None, "HEADS_BLOCK": block, "ROWS": size, "EDGES": edges}


def _grid(rows: RowSpans, tile: dict[str, int | bool]) -> tuple[int]:
    return (triton.cdiv(rows.size, int(tile["ROWS"])),)


def softmax(adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> tuple[Tensor, None]:
    """See `AttentionKernels`."""
    heads = source.size(1)
    out = source.new_empty(adjacency.num_rows, heads)

    def launch(rows: RowSpans, edges: int) -> None:
        tile = _tile(rows, heads, edges=edges)
        _log_denominator[_grid(rows, tile)](
            rows.first, rows.last, rows.owner, adjacency.col, adjacency.weight, source, target, out, rows.size,
            rows.limit, slope, WEIGHT=adjacency.weight is not None, TARGET_SCORE=target is not None, **tile,
            num_warps=4 if edges == EDGES else 8,
        )  # fmt: skip

    def launch_long(chunks: RowChunks) -> None:
        # a score is one number: long rows are read in wide blocks, and need not be cut
        launch(RowSpans(*adjacency.chunked_rows, chunks.rows, chunks.rows.numel()), LONG_EDGES)

    run_by_length(adjacency, source, lambda rows: launch(rows, EDGES), launch_long)
    return out, None


def edge_weights(
    adjacency: Adjacency, rows: RowSpans, attention: AttentionInputs, scale: Tensor | None, out: Tensor,
    *, transposed: bool,
) -> None:  # fmt: skip
    """Writes `α` of each edge of `rows` times the `scale` of its column into `out` `[edges, heads]`.

    Rows are targets, or `transposed` sources.
    """
    scores = attention.target, attention.source
    of_row, of_col = scores[::-1] if transposed else scores
    tile = _tile(rows, attention.config.heads)
    _edge_weights[_grid(rows, tile)](
        rows.first, rows.last, rows.owner, adjacency.col, adjacency.weight, of_row, of_col, attention.log_denominator,
        scale, out, rows.size, rows.limit, attention.config.negative_slope, WEIGHT=adjacency.weight is not None,
        OF_ROW=of_row is not None, OF_COL=of_col is not None, ROWS_ATTEND=not transposed, SCALE=scale is not None,
        **tile, num_warps=4,
    )  # fmt: skip


def sum_edges(adjacency: Adjacency, x: Tensor, place: Tensor) -> Tensor:
    """The sum of `x` `[edges, heads]` over the edges of each row; edge `e` has row `place[e]` of `x`."""
    heads = x.size(1)
    out = x.new_empty(adjacency.num_rows, heads)

    def launch(rows: RowSpans, to: Tensor, *, partial: bool) -> None:
        tile = _tile(rows, heads)
        _sum_edges[_grid(rows, tile)](
            rows.first, rows.last, rows.owner, place, x, to, rows.size, rows.limit, PARTIAL=partial, **tile,
            num_warps=4,
        )  # fmt: skip

    def launch_long(chunks: RowChunks) -> None:
        sums = x.new_empty(chunks.owner.numel(), heads)
        launch(chunk_spans(chunks), sums, partial=True)
        sum_chunks(chunks, sums, out)

    run_by_length(adjacency, x, lambda rows: launch(rows, out, partial=False), launch_long)
    return out


def score_gradient(
    transposed: Adjacency, attention: AttentionInputs, dot: Tensor, product: Tensor, out: Tensor, *, add: bool
) -> Tensor:
    """Returns the gradients of the edges' scores `[edges, heads]`, and writes their sums over each source into `out`.

    `product` `[edges, heads]` is `α_ij` times its gradient. `dot` `[targets, heads]` is the sum of it over the edges of
    a target, which softmax subtracts. With `add`, the sums are added to what is in `out`.
    """
    # a row that is not long may be among the long ones, and is computed twice: nothing is written in place
    edge_gradient = torch.empty_like(product)

    def launch(rows: RowSpans, to: Tensor, *, partial: bool) -> None:
        tile = _tile(rows, attention.config.heads)
        _score_gradient[_grid(rows, tile)](
            rows.first, rows.last, rows.owner, transposed.col, transposed.weight, attention.source, attention.target,
            attention.log_denominator, dot, product, edge_gradient, to, rows.size, rows.limit,
            attention.config.negative_slope, to.stride(0), PARTIAL=partial, ADD=add,
            WEIGHT=transposed.weight is not None, TARGET_SCORE=attention.target is not None, **tile, num_warps=4,
        )  # fmt: skip

    def launch_long(chunks: RowChunks) -> None:
        partial = product.new_empty(chunks.owner.numel(), attention.config.heads)
        launch(chunk_spans(chunks), partial, partial=True)
        sum_chunks(chunks, partial, out)

    run_by_length(transposed, product, lambda rows: launch(rows, out, partial=False), launch_long, occupied=add)
    return edge_gradient
