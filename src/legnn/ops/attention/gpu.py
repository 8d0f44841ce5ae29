"""Attention on a GPU, in Triton: its denominator, its sum, and its gradient along the transpose."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.attention.gpu_edges import leaky
from legnn.ops.attention.gpu_edges import softmax as softmax
from legnn.ops.attention.gpu_scores import score_gradient, target_sums, write_target_gradients
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.gpu import (
    BLOCK,
    REGISTERS,
    Programs,
    launch_rows,
    of_label,
    sum_heads,
)
from legnn.ops.types import AttentionGradient, AttentionInputs, RowTerms

READS_SHARE = False
EDGES, EDGES_IN_BF16 = 2, 4
"""Edges in flight at once in a program of the gradient, which holds whole heads in registers."""
WARPS = 1


@triton.jit
def _value_gradient(
    first, last, owner, rowptr, col, weight, values, source, target, scaled_log, source_scale, gradient, product, out,
    label_of, label_source, label_target, label_log, label_scale, label_gradient, label_product, limit, slope,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, VALUES_STRIDE: tl.constexpr, UP_STRIDE: tl.constexpr,
    OUT_STRIDE: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, WEIGHT: tl.constexpr,
    TARGET_SCORE: tl.constexpr, SOURCE: tl.constexpr, LABEL: tl.constexpr, LABEL_TARGET: tl.constexpr,
    LABEL_SCALE: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    # a program has a whole head of one source, since the gradient of a score is a product over all of it
    program = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    begin = tl.load(first + program)
    end = tl.load(last + program)
    row = program
    if OWNED:
        row = tl.load(owner + program).to(tl.int64)
    source_score = tl.load(source + row * HEADS + head)
    sends = 1.0
    if SOURCE:
        sends = tl.load(source_scale + row).to(tl.float32)
    if LABEL:
        y = tl.load(label_of + row)
        if PARTIAL:
            # of a row in chunks, the first one has its label
            y = tl.where(tl.load(rowptr + row) == begin, y, -1)
    if end - begin <= limit:
        within = tl.arange(0, BLOCK)
        in_head = within < CHANNELS
        column = head * CHANNELS + within
        value = tl.load(values + row * VALUES_STRIDE + column, mask=in_head, other=0.0)
        total = tl.zeros([BLOCK], dtype=tl.float32)
        # the ends of the next edges are read while the rows of these are on their way
        following = (begin + tl.arange(0, EDGES)).to(tl.int64)
        next_i = tl.load(col + following, mask=following < end, other=0)
        for edge in range(begin, end, EDGES):
            k = (edge + tl.arange(0, EDGES)).to(tl.int64)
            inside = k < end
            i = next_i.to(tl.int64)
            following = k + EDGES
            next_i = tl.load(col + following, mask=following < end, other=0)
            # every lane computes the number of an edge: it is read with the row, and is no pass of its own
            score = tl.zeros([EDGES], dtype=tl.float32) + source_score
            if TARGET_SCORE:
                score += tl.load(target + i * HEADS + head, mask=inside, other=0.0)
            arrives = tl.load(scaled_log + i * HEADS + head, mask=inside, other=float("inf"))
            arrives = sends * tl.exp(leaky(score, slope) - arrives)
            if WEIGHT:
                arrives *= tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)
            up = tl.load(
                gradient + i[:, None] * UP_STRIDE + column[None, :], mask=inside[:, None] & in_head[None, :], other=0.0
            ).to(tl.float32)
            total += tl.sum(arrives[:, None] * up, 0)
            change = arrives * tl.sum(up * value.to(tl.float32)[None, :], 1)
            tl.store(product + k * HEADS + head, change, mask=inside)
        # one condition is known when it is compiled, the other is not
        if LABEL:  # noqa: SIM102
            if y >= 0:
                up = of_label(label_gradient + y * UP_STRIDE, y, column, in_head).to(tl.float32)
                score = tl.load(label_source + row * HEADS + head)
                if LABEL_TARGET:
                    score += tl.load(label_target + y * HEADS + head)
                arrives = tl.exp(leaky(score, slope) - tl.load(label_log + y * HEADS + head))
                if LABEL_SCALE:
                    arrives *= tl.load(label_scale + row).to(tl.float32)
                total += arrives * up
                tl.store(label_product + row * HEADS + head, arrives * tl.sum(up * value.to(tl.float32), 0))
        to = row
        if PARTIAL:
            to = program
        tl.store(out + to * OUT_STRIDE + column, total.to(out.dtype.element_ty), mask=in_head)


def attention_sum(adjacency: Adjacency, attention: AttentionInputs, terms: RowTerms = RowTerms()) -> Tensor:
    """As in `cpu`."""
    x, (channels, heads, _, _) = attention.values_and_scores, attention.config
    out = x.new_empty(adjacency.num_rows, channels)
    sum_heads(adjacency, attention.share, heads, x, channels, terms, out)
    return out


def attention_gradient(
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor, score_scale: Tensor | None
) -> Tensor | None:
    """As in `cpu`."""
    (channels, heads, _, _), transposed = nodes.inputs.config, nodes.adjacency.transpose
    source_scores, others = into[:, channels : channels + heads], into[:, channels + heads :]
    product, label_product = _value_gradients(nodes, labels, into)
    sums = _target_sums(nodes, product)
    of_labels: tuple[Tensor | None, ...] = (None,) * 6
    d_label_target: Tensor | None = None
    if labels is not None and label_product is not None:
        of, label_sums = labels.inputs, _target_sums(labels, label_product)
        of_labels = labels.label_of, of.source, of.target, of.log_denominator, label_sums, label_product
        if of.target is not None:
            d_label_target = into.new_empty(label_sums.size(0), heads)
            write_target_gradients(label_sums, d_label_target)
    score_gradient(transposed, nodes.inputs, sums, product, score_scale, of_labels, source_scores)
    write_target_gradients(sums, others)
    return d_label_target


def _value_gradients(
    nodes: AttentionGradient, labels: AttentionGradient | None, into: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Writes the gradients of the values into `into`; returns `α_ij` times its gradient.

    That is `[edges, heads]` of the nodes, in the order of the transpose, and `[sources, heads]` of the labels.
    """
    (channels, heads, _, slope), transposed = nodes.inputs.config, nodes.adjacency.transpose
    width = channels // heads
    block = triton.next_power_of_2(width)
    # more registers, and fewer programs would run at the same time
    size = {"num_warps": WARPS, "maxnreg": REGISTERS} if block <= BLOCK else {"num_warps": 4}
    scores = nodes.inputs
    # a number for each edge and head; a row that is not long may be among the long ones, and is computed twice
    product = scores.source.new_empty(transposed.num_edges, heads)
    values, gradient, terms = scores.values_and_scores, nodes.d_output, nodes.terms
    label_product: Tensor | None = None
    of_labels: tuple[Tensor | None, ...] = (None,) * 7
    if labels is not None:
        of, label_product = labels.inputs, torch.empty_like(labels.inputs.source)
        of_labels = (
            labels.label_of, of.source, of.target, of.log_denominator, labels.terms.source_scale, labels.d_output,
            label_product,
        )  # fmt: skip

    def launch(rows: Programs, out: Tensor) -> None:
        _value_gradient[(rows.size, heads)](
            rows.first, rows.last, rows.owner, transposed.rowptr, transposed.col, transposed.weight, values,
            scores.source, scores.target, scores.scaled_log, terms.source_scale, gradient, product, out,
            *of_labels, rows.limit, slope,
            HEADS=heads, CHANNELS=width, VALUES_STRIDE=values.stride(0), UP_STRIDE=gradient.stride(0),
            OUT_STRIDE=out.stride(0), OWNED=rows.owner is not None, PARTIAL=rows.partial,
            WEIGHT=transposed.weight is not None, TARGET_SCORE=scores.target is not None,
            SOURCE=terms.source_scale is not None, LABEL=labels is not None,
            LABEL_TARGET=of_labels[2] is not None, LABEL_SCALE=of_labels[4] is not None, BLOCK=block,
            EDGES=EDGES_IN_BF16 if into.dtype == torch.bfloat16 else EDGES, **size,
        )  # fmt: skip

    launch_rows(transposed, launch, into[:, :channels])
    return product, label_product


def _target_sums(relation: AttentionGradient, product: Tensor) -> Tensor:
    """`target_sums`, the first of them less the gradient of the log-denominator: what softmax subtracts."""
    adjacency = relation.adjacency
    edge_position = adjacency.perm if relation.label_of is None else adjacency.col
    sums = target_sums(adjacency, relation.inputs, product, edge_position)
    if relation.d_log is not None:
        sums[:, 0] -= relation.d_log
    return sums
