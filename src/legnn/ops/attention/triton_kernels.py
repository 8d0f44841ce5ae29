"""Attention on a GPU, in Triton: its denominator, its sum, and its gradient along the transpose."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.attention.triton_edges import edge_weights, score_gradient, sum_edges
from legnn.ops.attention.triton_edges import softmax as softmax
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.row_chunks import RowChunks
from legnn.ops.propagate.triton_columns import columns_of_head, head_vector, vectors_end
from legnn.ops.propagate.triton_kernels import (
    RowSpans,
    chunk_spans,
    run_by_length,
    sum_chunks,
    sum_long_rows,
    sum_whole_rows,
    whole_rows,
)
from legnn.ops.runtime.launch import launched
from legnn.ops.runtime.padding import padded_width
from legnn.ops.runtime.streams import run_beside
from legnn.ops.types import AttentionGradient, AttentionInputs, RowTerms

READS_OUTPUT = False
EDGES, EDGES_IN_BF16 = 2, 4
"""Edges in flight at once in a program of the gradient, which holds whole heads in registers."""
WARPS = 1
ROWS = 8
"""Sources of a program where each has one edge."""


@launched
@triton.jit
def _value_gradient(
    first, last, owner, col, weight, values, gradient, source_scale, product, out, limit,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, VALUES_STRIDE: tl.constexpr, UP_STRIDE: tl.constexpr,
    OUT_STRIDE: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, SOURCE: tl.constexpr,
    VECTOR: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    # a program has a whole head of one source, since the gradient of a score is a product over all of it
    program = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    begin = tl.load(first + program)
    end = tl.load(last + program)
    if end - begin <= limit:
        row = program
        if OWNED:
            row = tl.load(owner + program).to(tl.int64)
        sends = 1.0
        if SOURCE:
            sends = tl.load(source_scale + row).to(tl.float32)
        column, there = columns_of_head(head, 0, CHANNELS, VECTOR, BLOCK)
        read = there
        if VECTOR:
            read = column < vectors_end(head, CHANNELS, VECTOR)
        mine = sends * tl.load(values + row * VALUES_STRIDE + column, mask=there, other=0.0).to(tl.float32)
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for edge in range(begin, end, EDGES):
            k = (edge + tl.arange(0, EDGES)).to(tl.int64)
            inside = k < end
            i = tl.load(col + k, mask=inside, other=0).to(tl.int64)
            arrives = tl.load(weight + k * HEADS + head, mask=inside, other=0.0)
            up = tl.load(
                gradient + i[:, None] * UP_STRIDE + column[None, :], mask=inside[:, None] & read[None, :], other=0.0
            ).to(tl.float32)
            total += tl.sum(arrives[:, None] * up, 0)
            tl.store(product + k * HEADS + head, arrives * tl.sum(up * mine[None, :], 1), mask=inside)
        to = row
        if PARTIAL:
            to = program
        to_row = out + to * OUT_STRIDE
        tl.store(to_row + column, (sends * total).to(out.dtype.element_ty), mask=there)


@launched
@triton.jit
def _add_single_edges(
    first, last, owner, col, weight, values, gradient, source_scale, product, into, size,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, VALUES_STRIDE: tl.constexpr, UP_STRIDE: tl.constexpr,
    OWNED: tl.constexpr, SOURCE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """`_value_gradient` of sources that have one edge at most, as nodes have to labels: several to a program."""
    head = tl.program_id(1)
    span = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    edge = tl.load(first + span, mask=span < size, other=0).to(tl.int64)
    here = tl.load(last + span, mask=span < size, other=0) > edge
    row = span.to(tl.int64)
    if OWNED:
        row = tl.load(owner + span, mask=here, other=0).to(tl.int64)
    target = tl.load(col + edge, mask=here, other=0).to(tl.int64)
    arrives = tl.load(weight + edge * HEADS + head, mask=here, other=0.0)
    sends = here.to(tl.float32)
    if SOURCE:
        sends = tl.load(source_scale + row, mask=here, other=0.0).to(tl.float32)
    column, there = columns_of_head(head, 0, CHANNELS, VECTOR, BLOCK)
    mask = here[:, None] & there[None, :]
    up = tl.load(gradient + target[:, None] * UP_STRIDE + column[None, :], mask=mask, other=0.0).to(tl.float32)
    at_row = row[:, None] * VALUES_STRIDE + column[None, :]
    mine = tl.load(values + at_row, mask=mask, other=0.0).to(tl.float32)
    tl.store(product + edge * HEADS + head, arrives * tl.sum(up * (sends[:, None] * mine), 1), mask=here)
    change = (sends * arrives)[:, None] * up
    change += tl.load(into + at_row, mask=mask, other=0.0).to(tl.float32)
    tl.store(into + at_row, change.to(into.dtype.element_ty), mask=mask)


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """See `AttentionKernels`."""
    x, (channels, heads, _, _) = attention.values_and_scores, attention.config
    out = x.new_empty(adjacency.num_rows, padded_width(channels, x))
    weight = _of_edges(adjacency, attention)
    rest = terms._replace(source_scale=None)

    def weigh(rows: RowSpans) -> None:
        edge_weights(adjacency, rows, attention, terms.source_scale, weight, transposed=False)

    def whole(rows: RowSpans) -> None:
        weigh(rows)
        sum_whole_rows(adjacency, rows, x, channels, out, rest, weight, heads)

    def long(chunks: RowChunks) -> None:
        weigh(chunk_spans(chunks))
        sum_long_rows(adjacency, chunks, x, channels, out, rest, weight, heads)

    run_beside(x, lambda: run_by_length(adjacency, x, whole, long), out[:, channels:].zero_)
    return out


def attention_gradient(
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, between: Callable[[], None]
) -> tuple[Tensor | None, Tensor | None]:
    """See `AttentionKernels`."""
    product = _value_gradients(nodes, into)

    def of_nodes() -> Tensor:
        return _score_gradients(nodes, product, _softmax_terms(nodes, product), into, add=False)

    if labels is None:
        edge_gradient = of_nodes()
        between()
        return _target_gradients(nodes, edge_gradient), None

    def of_labels() -> tuple[Tensor, Tensor]:
        label_product = _add_value_gradients(labels, into)
        return label_product, _softmax_terms(labels, label_product)

    # scores are a number for each edge: beside them there is room for the few rows of labels
    edge_gradient, label_terms = run_beside(into, of_nodes, of_labels)
    between()
    return run_beside(
        into,
        lambda: _target_gradients(nodes, edge_gradient),
        lambda: _target_gradients(labels, _score_gradients(labels, *label_terms, into, add=True)),
    )


def _value_gradients(relation: AttentionGradient, into: Tensor) -> Tensor:
    """Writes the gradients of the values into `into`; returns `α_ij` times its gradient `[edges, heads]`."""
    channels, transposed = relation.inputs.config.channels, relation.adjacency.transpose
    # not in place, see `score_gradient`
    weight, product = (_of_edges(transposed, relation.inputs) for _ in range(2))

    def launch(rows: RowSpans, out: Tensor, *, partial: bool) -> None:
        edge_weights(transposed, rows, relation.inputs, relation.terms.target_scale, weight, transposed=True)
        tile = _tile(relation)
        _value_gradient[(rows.size, tile["HEADS"])](
            rows.first, rows.last, rows.owner, transposed.col, weight, *_operands(relation), product, out, rows.limit,
            **tile, OUT_STRIDE=out.stride(0), OWNED=rows.owner is not None, PARTIAL=partial,
            EDGES=EDGES_IN_BF16 if into.dtype == torch.bfloat16 else EDGES,
            num_warps=WARPS if tile["BLOCK"] <= 256 else 4,
        )  # fmt: skip

    def long(chunks: RowChunks) -> None:
        partial = torch.empty(chunks.owner.numel(), channels, dtype=torch.float32, device=into.device)
        launch(chunk_spans(chunks), partial, partial=True)
        sum_chunks(chunks, partial, into)

    run_by_length(transposed, into, lambda rows: launch(rows, into, partial=False), long)
    return product


def _add_value_gradients(relation: AttentionGradient, into: Tensor) -> Tensor:
    """The same of sources that have one edge at most, added to what is in `into`."""
    transposed, tile = relation.adjacency.transpose, _tile(relation)
    weight, product = (_of_edges(transposed, relation.inputs) for _ in range(2))
    for rows in whole_rows(transposed, occupied=True):
        edge_weights(transposed, rows, relation.inputs, relation.terms.target_scale, weight, transposed=True)
        _add_single_edges[(triton.cdiv(rows.size, ROWS), tile["HEADS"])](
            rows.first, rows.last, rows.owner, transposed.col, weight, *_operands(relation), product, into, rows.size,
            **tile, OWNED=rows.owner is not None, ROWS=ROWS, num_warps=4,
        )  # fmt: skip
    return product


def _operands(relation: AttentionGradient) -> tuple[Tensor, Tensor, Tensor | None]:
    return relation.inputs.values_and_scores, relation.d_output, relation.terms.source_scale


def _tile(relation: AttentionGradient) -> dict[str, int]:
    """What both kernels of the values' gradient are launched with: a whole head to a program."""
    (channels, heads, _, _), (values, gradient, source_scale) = relation.inputs.config, _operands(relation)
    width, vector = channels // heads, head_vector(gradient, channels, heads)
    return {
        "HEADS": heads, "CHANNELS": width, "VALUES_STRIDE": values.stride(0), "UP_STRIDE": gradient.stride(0),
        "SOURCE": source_scale is not None, "VECTOR": vector, "BLOCK": triton.next_power_of_2(width + vector),
    }  # fmt: skip


def _softmax_terms(relation: AttentionGradient, product: Tensor) -> Tensor:
    """`Σ_k α_ik (t_i s_k gradient_i · values_k)` `[rows, heads]`, that softmax subtracts from a score's gradient."""
    dot = sum_edges(relation.adjacency, product, relation.adjacency.transposition.place)
    return dot if relation.d_log is None else dot - relation.d_log


def _score_gradients(relation: AttentionGradient, product: Tensor, dot: Tensor, into: Tensor, *, add: bool) -> Tensor:
    """Writes the gradients of the source scores into `into`; returns those of the edges' scores `[edges, heads]`."""
    channels, heads, _, _ = relation.inputs.config
    scores = into[:, channels : channels + heads]
    return score_gradient(relation.adjacency.transpose, relation.inputs, dot, product, scores, add=add)


def _target_gradients(relation: AttentionGradient, edge_gradient: Tensor) -> Tensor | None:
    """The gradients of the target scores, from those of the edges' scores; None if scores do not depend on targets."""
    if relation.inputs.target is None:
        return None
    return sum_edges(relation.adjacency, edge_gradient, relation.adjacency.transposition.place)


def _of_edges(adjacency: Adjacency, attention: AttentionInputs) -> Tensor:
    """A number for each edge and head, `[edges, heads]`, not yet written."""
    return attention.source.new_empty(adjacency.num_edges, attention.config.heads)
