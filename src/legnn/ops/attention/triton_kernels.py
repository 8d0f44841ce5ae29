"""Attention on a GPU, in Triton: its denominator, its sum, and its gradient along the transpose."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.triton_kernels import (
    RowSpans,
    chunk_spans,
    leaky,
    row_stride,
    sum_chunks,
    sum_into,
    whole_rows,
)
from legnn.ops.runtime.padding import padded_width
from legnn.ops.types import AttentionInputs, RowTerms

EDGES = 2
"""Edges in flight at once in a program of the gradient, which holds whole heads in registers."""


@triton.jit
def _log_denominator(
    first, last, owner, col, weight, source, target, out, limit, slope,
    HEADS: tl.constexpr, OWNED: tl.constexpr, WEIGHT: tl.constexpr, TARGET_SCORE: tl.constexpr,
    HEADS_BLOCK: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    begin = tl.load(first + program)
    end = tl.load(last + program)
    if end - begin <= limit:
        row = program
        if OWNED:
            row = tl.load(owner + program).to(tl.int64)
        head = tl.arange(0, HEADS_BLOCK)
        there = head < HEADS
        target_score = tl.zeros([HEADS_BLOCK], dtype=tl.float32)
        if TARGET_SCORE:
            target_score = tl.load(target + row * HEADS + head, mask=there, other=0.0)
        largest = tl.full([HEADS_BLOCK], float("-inf"), dtype=tl.float32)
        total = tl.zeros([HEADS_BLOCK], dtype=tl.float32)
        for edge in range(begin, end, EDGES):
            k = edge + tl.arange(0, EDGES)
            inside = k < end
            j = tl.load(col + k, mask=inside, other=0).to(tl.int64)
            both = inside[:, None] & there[None, :]
            score = tl.load(source + j[:, None] * HEADS + head[None, :], mask=both, other=0.0)
            score = leaky(score + target_score[None, :], slope)
            if WEIGHT:
                score += tl.log(tl.load(weight + k, mask=inside, other=1.0).to(tl.float32))[:, None]
            score = tl.where(inside[:, None], score, float("-inf"))
            top = tl.maximum(largest, tl.max(score, 0))
            total = total * tl.exp(largest - top) + tl.sum(tl.exp(score - top[None, :]), 0)
            largest = top
        result = tl.where(total > 0, largest + tl.log(total), float("-inf"))
        tl.store(out + row * HEADS + head, result, mask=there)


@triton.jit
def _attention_dot(
    gradient, nodes, label_of, label_rows, label_scale, add, out,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, STRIDE: tl.constexpr, LABEL_STRIDE: tl.constexpr,
    ADD: tl.constexpr, LABEL: tl.constexpr, LABEL_SCALE: tl.constexpr, HEADS_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS_BLOCK)
    within = tl.arange(0, BLOCK)
    there = (head < HEADS)[:, None] & (within < CHANNELS)[None, :]
    column = head[:, None] * CHANNELS + within[None, :]
    up = tl.load(gradient + row * STRIDE + column, mask=there, other=0.0).to(tl.float32)
    value = tl.load(nodes + row * STRIDE + column, mask=there, other=0.0).to(tl.float32)
    if LABEL:
        y = tl.load(label_of + row)
        if y >= 0:
            message = tl.load(label_rows + y * LABEL_STRIDE + column, mask=there, other=0.0).to(tl.float32)
            if LABEL_SCALE:
                message *= tl.load(label_scale + row).to(tl.float32)
            value -= message
    if ADD:
        value -= tl.load(add + row * STRIDE + column, mask=there, other=0.0).to(tl.float32)
    tl.store(out + row * HEADS + head, tl.sum(up * value, 1), mask=head < HEADS)


@triton.jit
def _attention_gradient(
    first, last, owner, col, weight, values_and_scores, gradient, source, target, log_denominator, dot,
    source_scale, target_scale, out, edge_gradient, limit, slope,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, VALUES_STRIDE: tl.constexpr, UP_STRIDE: tl.constexpr,
    OUT_STRIDE: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, ADD: tl.constexpr, WEIGHT: tl.constexpr,
    SOURCE: tl.constexpr, TARGET: tl.constexpr, TARGET_SCORE: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    # a program has a whole head of one source, since the gradient of a score is a product over all of it
    program = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    begin = tl.load(first + program)
    end = tl.load(last + program)
    needed = end - begin <= limit
    if ADD:
        needed = needed & (end > begin)
    if needed:
        row = program
        if OWNED:
            row = tl.load(owner + program).to(tl.int64)
        sends = 1.0
        if SOURCE:
            sends = tl.load(source_scale + row).to(tl.float32)
        within = tl.arange(0, BLOCK)
        there = within < CHANNELS
        column = head * CHANNELS + within
        mine = sends * tl.load(values_and_scores + row * VALUES_STRIDE + column, mask=there, other=0.0).to(tl.float32)
        own = tl.load(source + row * HEADS + head)
        total = tl.zeros([EDGES, BLOCK], dtype=tl.float32)
        score_total = tl.zeros([EDGES], dtype=tl.float32)
        for edge in range(begin, end, EDGES):
            k = edge + tl.arange(0, EDGES)
            inside = k < end
            i = tl.load(col + k, mask=inside, other=0).to(tl.int64)
            score = own + tl.zeros([EDGES], dtype=tl.float32)
            if TARGET_SCORE:
                score += tl.load(target + i * HEADS + head, mask=inside, other=0.0)
            offset = tl.load(log_denominator + i * HEADS + head, mask=inside, other=0.0)
            share = tl.where(inside, tl.exp(leaky(score, slope) - offset), 0.0)
            if WEIGHT:
                share *= tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)
            arrives = share
            if TARGET:
                arrives = share * tl.load(target_scale + i, mask=inside, other=0.0).to(tl.float32)
            up = tl.load(
                gradient + i[:, None] * UP_STRIDE + column[None, :], mask=inside[:, None] & there[None, :], other=0.0
            ).to(tl.float32)
            total += arrives[:, None] * up
            taken = tl.load(dot + i * HEADS + head, mask=inside, other=0.0)
            change = (arrives * tl.sum(up * mine[None, :], 1) - share * taken) * tl.where(score > 0, 1.0, slope)
            score_total += change
            if TARGET_SCORE:
                tl.store(edge_gradient + k.to(tl.int64) * HEADS + head, change, mask=inside)
        to = row
        if PARTIAL:
            to = program
        to_row = out + to * OUT_STRIDE
        to_score = to_row + HEADS * CHANNELS + head
        values = sends * tl.sum(total, 0)
        score_sum = tl.sum(score_total, 0)
        if ADD:
            values += tl.load(to_row + column, mask=there, other=0.0).to(tl.float32)
            score_sum += tl.load(to_score).to(tl.float32)
        tl.store(to_row + column, values.to(out.dtype.element_ty), mask=there)
        tl.store(to_score, score_sum.to(out.dtype.element_ty))


def log_denominator(adjacency: Adjacency, source: Tensor, target: Tensor | None, slope: float) -> Tensor:
    """See `AttentionKernels`."""
    heads = source.size(1)
    out = source.new_empty(adjacency.num_rows, heads)
    launches = [(rows, 16) for rows in whole_rows(adjacency)]
    chunks = adjacency.row_chunks
    if chunks is not None:
        # a score is one number: long rows are read in wide blocks, and need not be cut
        begin, end = adjacency.rowptr[chunks.rows], adjacency.rowptr[chunks.rows + 1]
        launches.append((RowSpans(begin, end, chunks.rows, chunks.rows.numel()), 512))
    for rows, edges in launches:
        _log_denominator[(rows.size,)](
            rows.first, rows.last, rows.owner, adjacency.col, adjacency.weight, source, target, out, rows.limit, slope,
            HEADS=heads, OWNED=rows.owner is not None, WEIGHT=adjacency.weight is not None,
            TARGET_SCORE=target is not None, HEADS_BLOCK=triton.next_power_of_2(heads), EDGES=edges,
            num_warps=1 if edges == 16 else 4,
        )  # fmt: skip
    return out


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """See `AttentionKernels`."""
    x, channels = attention.values_and_scores, attention.config.channels
    out = x.new_empty(adjacency.num_rows, padded_width(channels, x))
    out[:, channels:] = 0
    return sum_into(adjacency, x, channels, out, terms, attention=attention)


def attention_dot(gradient: Tensor, nodes: Tensor, channels: int, heads: int, terms: RowTerms) -> Tensor:
    """See `AttentionKernels`."""
    rows = gradient.size(0)
    out = torch.empty(rows, heads, dtype=torch.float32, device=gradient.device)
    if rows:
        _attention_dot[(rows,)](
            gradient, nodes, terms.label_of, terms.label_rows, terms.label_scale, terms.add, out,
            HEADS=heads, CHANNELS=channels // heads, STRIDE=gradient.stride(0),
            LABEL_STRIDE=row_stride(terms.label_rows), ADD=terms.add is not None, LABEL=terms.label_of is not None,
            LABEL_SCALE=terms.label_scale is not None,
            HEADS_BLOCK=triton.next_power_of_2(heads), BLOCK=triton.next_power_of_2(channels // heads), num_warps=2,
        )  # fmt: skip
    return out


def attention_gradient(
    transposed: Adjacency, attention: AttentionInputs, gradient: Tensor, dot: Tensor, terms: RowTerms,
    into: Tensor, *, add: bool,
) -> Tensor | None:  # fmt: skip
    """See `AttentionKernels`."""
    x, (channels, heads, _, slope) = attention.values_and_scores, attention.config
    use_target = attention.target is not None
    edge_gradient = attention.source.new_empty(transposed.num_edges, heads) if use_target else None
    block = triton.next_power_of_2(channels // heads)

    def launch(rows: RowSpans, out: Tensor, *, partial: bool) -> None:
        _attention_gradient[(rows.size, heads)](
            rows.first, rows.last, rows.owner, transposed.col, transposed.weight, x, gradient, *attention[2:], dot,
            terms.source_scale, terms.target_scale, out, edge_gradient, rows.limit, slope,
            HEADS=heads, CHANNELS=channels // heads, VALUES_STRIDE=x.stride(0), UP_STRIDE=gradient.stride(0),
            OUT_STRIDE=out.stride(0), OWNED=rows.owner is not None, PARTIAL=partial, ADD=add,
            WEIGHT=transposed.weight is not None, SOURCE=terms.source_scale is not None,
            TARGET=terms.target_scale is not None, TARGET_SCORE=use_target,
            BLOCK=block, EDGES=EDGES, num_warps=1 if block <= 256 else 4,
        )  # fmt: skip

    for rows in whole_rows(transposed, occupied=add):
        launch(rows, into, partial=False)
    chunks = transposed.row_chunks
    if chunks is not None:
        partial = torch.empty(chunks.owner.numel(), channels + heads, dtype=torch.float32, device=x.device)
        launch(chunk_spans(chunks), partial, partial=True)
        sum_chunks(chunks, partial, into)
    return edge_gradient
