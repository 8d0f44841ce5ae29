"""The softmax over the edges of each row on a GPU, in Triton: a number for each edge and head.

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
from legnn.ops.propagate.gpu import Programs, launch_short_and_long_rows
from legnn.ops.types import Softmax

ROWS, EDGES = 8, 16
"""Rows of a program, and edges of each that it reads at once."""
LONG_EDGES = 1024
"""Edges that a program reads at once of a row that is not cut into chunks, however long it is."""


@triton.jit
def leaky(score, slope):
    """`LeakyReLU(score)`."""
    return tl.where(score > 0, score, score * slope)


@triton.jit
def spans_of(first, last, owner, size, limit, OWNED: tl.constexpr, ROWS: tl.constexpr):
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


@triton.jit
def _edge_scores(
    begin, end, start, col, weight, source, target_score, slope,
    HEADS: tl.constexpr, WEIGHT: tl.constexpr, HEADS_BLOCK: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """The scores of `EDGES` edges of each row from its edge `start` on, `-inf` past its end, and where they are."""
    head = tl.arange(0, HEADS_BLOCK)
    k = begin[:, None] + start + tl.arange(0, EDGES)[None, :]
    inside = k < end[:, None]
    j = tl.load(col + k, mask=inside, other=0).to(tl.int64)
    both = inside[:, :, None] & (head < HEADS)[None, None, :]
    score = tl.load(source + j[:, :, None] * HEADS + head[None, None, :], mask=both, other=0.0)
    score = leaky(score + target_score[:, None, :], slope)
    if WEIGHT:
        score += tl.log(tl.load(weight + k, mask=inside, other=1.0).to(tl.float32))[:, :, None]
    return tl.where(inside[:, :, None], score, float("-inf")), k.to(tl.int64)[:, :, None] * HEADS + head, both


@triton.jit
def _softmax(
    first, last, owner, col, weight, source, target, target_scale, log_denominator, share, scaled_log, size, limit,
    slope,
    HEADS: tl.constexpr, OWNED: tl.constexpr, WEIGHT: tl.constexpr, TARGET_SCORE: tl.constexpr, SCALED: tl.constexpr,
    HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    _, here, row, begin, end = spans_of(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    mask = here[:, None] & (head < HEADS)[None, :]
    at_row = row[:, None] * HEADS + head[None, :]
    target_score = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    if TARGET_SCORE:
        target_score = tl.load(target + at_row, mask=mask, other=0.0)
    longest = tl.max(end - begin, 0)
    # the scores of the first edges stay in registers: most rows have no others
    score, at_first_edge, first_both = _edge_scores(
        begin, end, 0, col, weight, source, target_score, slope, HEADS, WEIGHT, HEADS_BLOCK, EDGES
    )
    largest = tl.max(score, 1)
    # a row without edges has only -inf
    total = tl.sum(tl.exp(score - tl.where(largest == float("-inf"), 0.0, largest)[:, None, :]), 1)
    for start in range(EDGES, longest, EDGES):
        more, at_edge, both = _edge_scores(
            begin, end, start, col, weight, source, target_score, slope, HEADS, WEIGHT, HEADS_BLOCK, EDGES
        )
        top = tl.maximum(largest, tl.max(more, 1))
        shift = tl.where(top == float("-inf"), 0.0, top)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(more - shift[:, None, :]), 1)
        largest = top
    log = tl.where(total > 0, largest + tl.log(total), float("-inf"))
    tl.store(log_denominator + at_row, log, mask=mask)
    if SCALED:
        scale = tl.load(target_scale + row, mask=here, other=1.0).to(tl.float32)
        tl.store(scaled_log + at_row, log - tl.log(scale)[:, None], mask=mask)
    log = tl.where(total > 0, log, 0.0)
    tl.store(share + at_first_edge, tl.exp(score - log[:, None, :]), mask=first_both)
    for start in range(EDGES, longest, EDGES):
        more, at_edge, both = _edge_scores(
            begin, end, start, col, weight, source, target_score, slope, HEADS, WEIGHT, HEADS_BLOCK, EDGES
        )
        tl.store(share + at_edge, tl.exp(more - log[:, None, :]), mask=both)


def tile_of(rows: Programs, heads: int, *, edges: int = EDGES) -> dict[str, int | bool]:
    """Arguments of every launch: whole programs of short rows, or one long row to each."""
    block = triton.next_power_of_2(heads)
    size = ROWS if edges == EDGES else 1
    return {"HEADS": heads, "OWNED": rows.owner is not None, "HEADS_BLOCK": block, "ROWS": size, "EDGES": edges}


def grid_of(rows: Programs, tile: dict[str, int | bool]) -> tuple[int]:
    """As many programs as `rows` need."""
    return (triton.cdiv(rows.size, int(tile["ROWS"])),)


def softmax(
    adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float, target_scale: Tensor | None
) -> Softmax:
    """As in `cpu`."""
    heads = source.size(1)
    log_denominator, share = (source.new_empty(size, heads) for size in (adjacency.num_rows, adjacency.num_edges))
    scaled_log = None if target_scale is None else torch.empty_like(log_denominator)

    def launch(rows: Programs, edges: int) -> None:
        tile = tile_of(rows, heads, edges=edges)
        _softmax[grid_of(rows, tile)](
            rows.first, rows.last, rows.owner, adjacency.col, adjacency.weight, source, target, target_scale,
            log_denominator, share, scaled_log, rows.size, rows.limit, slope, WEIGHT=adjacency.weight is not None,
            TARGET_SCORE=target is not None, SCALED=target_scale is not None, **tile,
            num_warps=4 if edges == EDGES else 8,
        )  # fmt: skip

    def launch_long(chunks: RowChunks) -> None:
        # a score is one number: long rows are read in wide blocks, and need not be cut
        launch(Programs(*adjacency.chunked_rows, chunks.rows, chunks.rows.numel()), LONG_EDGES)

    launch_short_and_long_rows(adjacency, lambda rows: launch(rows, EDGES), launch_long)
    return Softmax(log_denominator, share, log_denominator if scaled_log is None else scaled_log)
