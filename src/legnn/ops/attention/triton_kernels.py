"""Attention on a GPU, in Triton: its denominator, its sum, and its gradient along the transpose."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.attention.triton_edges import all_spans, edge_weights, score_gradient, sum_edges
from legnn.ops.attention.triton_edges import log_denominator as log_denominator
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.triton_kernels import RowSpans, columns_of_head, head_vector, sum_chunks, sum_into, vectors_end
from legnn.ops.runtime.padding import padded_width
from legnn.ops.types import AttentionInputs, RowTerms

READS_OUTPUT = False
EDGES = 2
"""Edges in flight at once in a program of the gradient, which holds whole heads in registers."""
WARPS = 1


@triton.jit
def _value_gradient(
    first, last, owner, col, weight, values, gradient, source_scale, out, limit,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, VALUES_STRIDE: tl.constexpr, UP_STRIDE: tl.constexpr,
    OUT_STRIDE: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, ADD: tl.constexpr, SOURCE: tl.constexpr,
    VECTOR: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr,
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
        column, there = columns_of_head(head, 0, CHANNELS, VECTOR, BLOCK)
        read = there
        if VECTOR:
            read = column < vectors_end(head, CHANNELS, VECTOR)
        mine = sends * tl.load(values + row * VALUES_STRIDE + column, mask=there, other=0.0).to(tl.float32)
        total = tl.zeros([EDGES, BLOCK], dtype=tl.float32)
        for edge in range(begin, end, EDGES):
            k = (edge + tl.arange(0, EDGES)).to(tl.int64)
            inside = k < end
            i = tl.load(col + k, mask=inside, other=0).to(tl.int64)
            arrives = tl.load(weight + k * HEADS + head, mask=inside, other=0.0)
            up = tl.load(
                gradient + i[:, None] * UP_STRIDE + column[None, :], mask=inside[:, None] & read[None, :], other=0.0
            ).to(tl.float32)
            total += arrives[:, None] * up
            tl.store(weight + k * HEADS + head, arrives * tl.sum(up * mine[None, :], 1), mask=inside)
        to = row
        if PARTIAL:
            to = program
        to_row = out + to * OUT_STRIDE
        result = sends * tl.sum(total, 0)
        if ADD:
            result += tl.load(to_row + column, mask=there, other=0.0).to(tl.float32)
        tl.store(to_row + column, result.to(out.dtype.element_ty), mask=there)


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """See `AttentionKernels`."""
    x, (channels, heads, _, _) = attention.values_and_scores, attention.config
    out = x.new_empty(adjacency.num_rows, padded_width(channels, x))
    out[:, channels:] = 0
    weight = edge_weights(adjacency, all_spans(adjacency), attention, terms.source_scale, transposed=False)
    return sum_into(adjacency, x, channels, out, terms._replace(source_scale=None), weight, heads)


def attention_gradient(
    adjacency: Adjacency, attention: AttentionInputs, gradient: Tensor, d_log: Tensor, nodes: Tensor | None,
    terms: RowTerms, into: Tensor, *, add: bool,
) -> Tensor | None:  # fmt: skip
    """See `AttentionKernels`."""
    x, (channels, heads, _, _) = attention.values_and_scores, attention.config
    transposed, place = adjacency.transposition.adjacency, adjacency.transposition.place
    spans, chunks = all_spans(transposed, occupied=add), transposed.row_chunks
    # the share of each edge, in the place of which its product with its gradient is written
    product = edge_weights(transposed, spans, attention, terms.target_scale, transposed=True)
    outs = [(rows, into, False) for rows in spans]
    if chunks is not None:
        partial = torch.empty(chunks.owner.numel(), channels + heads, dtype=torch.float32, device=x.device)
        outs[-1] = spans[-1], partial, True
    for rows, out, is_partial in outs:
        _launch_values(rows, transposed, product, attention, gradient, terms, out, partial=is_partial, add=add)
    # Σ_k α_ik (t_i s_k gradient_i · values_k), which softmax subtracts from the gradient of every score
    dot = sum_edges(adjacency, product, place) - d_log
    for rows, out, is_partial in outs:
        scores = out[:, channels : channels + heads]
        score_gradient(transposed, rows, attention, dot, product, scores, partial=is_partial, add=add)
    if chunks is not None:
        sum_chunks(chunks, partial, into)
    return None if attention.target is None else sum_edges(adjacency, product, place)


def _launch_values(
    rows: RowSpans, transposed: Adjacency, weight: Tensor, attention: AttentionInputs, gradient: Tensor,
    terms: RowTerms, out: Tensor, *, partial: bool, add: bool,
) -> None:  # fmt: skip
    """Writes the gradients of values, and multiplies `weight` `[edges, heads]` by the product of each edge's rows."""
    x, (channels, heads, _, _) = attention.values_and_scores, attention.config
    width, vector = channels // heads, head_vector(gradient, channels, heads)
    block = triton.next_power_of_2(width + vector)
    _value_gradient[(rows.size, heads)](
        rows.first, rows.last, rows.owner, transposed.col, weight, x, gradient, terms.source_scale, out, rows.limit,
        HEADS=heads, CHANNELS=width, VALUES_STRIDE=x.stride(0), UP_STRIDE=gradient.stride(0),
        OUT_STRIDE=out.stride(0), OWNED=rows.owner is not None, PARTIAL=partial, ADD=add,
        SOURCE=terms.source_scale is not None, VECTOR=vector, BLOCK=block, EDGES=EDGES,
        num_warps=WARPS if block <= 256 else 4,
    )  # fmt: skip
