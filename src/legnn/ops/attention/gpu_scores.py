"""Gradients of the scores of attention on a GPU, in Triton, from numbers of the edges; see `gpu_edges`."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.attention.gpu_edges import grid_of, leaky, spans_of, tile_of
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.propagate.gpu import Programs, launch_rows
from legnn.ops.types import AttentionInputs

TARGETS = 128
"""Targets of a program that writes the gradients of their scores."""


@triton.jit
def _target_sums(
    first, last, owner, position, col, weight, source, target, log_denominator, product, out, size, limit, slope,
    HEADS: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, WEIGHT: tl.constexpr, TARGET_SCORE: tl.constexpr,
    SUMS: tl.constexpr, HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    span, here, row, begin, end = spans_of(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    mask = here[:, None] & (head < HEADS)[None, :]
    products = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    if TARGET_SCORE:
        at_row = row[:, None] * HEADS + head[None, :]
        row_score = tl.load(target + at_row, mask=mask, other=0.0)
        log = tl.load(log_denominator + at_row, mask=mask, other=0.0)
        slopes_and_products = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
        slopes_and_shares = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    for start in range(0, tl.max(end - begin, 0), EDGES):
        k = begin[:, None] + start + tl.arange(0, EDGES)[None, :]
        inside = k < end[:, None]
        at = tl.load(position + k, mask=inside, other=0).to(tl.int64)
        both = inside[:, :, None] & (head < HEADS)[None, None, :]
        change = tl.load(product + at[:, :, None] * HEADS + head[None, None, :], mask=both, other=0.0)
        products += tl.sum(change, 1)
        if TARGET_SCORE:
            j = tl.load(col + k, mask=inside, other=0).to(tl.int64)
            score = row_score[:, None, :] + tl.load(
                source + j[:, :, None] * HEADS + head[None, None, :], mask=both, other=0.0
            )
            share = tl.exp(leaky(score, slope) - log[:, None, :])
            if WEIGHT:
                share *= tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)[:, :, None]
            steep = tl.where(score > 0, 1.0, slope)
            slopes_and_products += tl.sum(steep * change, 1)
            slopes_and_shares += tl.sum(tl.where(both, steep * share, 0.0), 1)
    to = row
    if PARTIAL:
        to = span.to(tl.int64)
    to_row = out + to[:, None] * (SUMS * HEADS) + head[None, :]
    tl.store(to_row, products, mask=mask)
    if TARGET_SCORE:
        tl.store(to_row + HEADS, slopes_and_products, mask=mask)
        tl.store(to_row + 2 * HEADS, slopes_and_shares, mask=mask)


@triton.jit
def _target_gradients(
    sums, out, num_targets, size, stride,
    HEADS: tl.constexpr, TARGET_SCORE: tl.constexpr, COLUMNS: tl.constexpr, COLUMNS_BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS_BLOCK)
    change = tl.zeros([ROWS, COLUMNS_BLOCK], dtype=tl.float32)
    if TARGET_SCORE:
        mask = (row < num_targets)[:, None] & (column < HEADS)[None, :]
        from_row = sums + row[:, None] * (3 * HEADS) + column[None, :]
        dot = tl.load(from_row, mask=mask, other=0.0)
        change = tl.load(from_row + HEADS, mask=mask, other=0.0)
        change -= dot * tl.load(from_row + 2 * HEADS, mask=mask, other=0.0)
    mask = (row < size)[:, None] & (column < COLUMNS)[None, :]
    tl.store(out + row[:, None] * stride + column[None, :], change.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _score_gradient(
    first, last, owner, rowptr, col, weight, source, target, log_denominator, dot, product, score_scale, out,
    label_of, label_source, label_target, label_log, label_dot, label_product, size, limit, slope,
    stride,
    HEADS: tl.constexpr, OWNED: tl.constexpr, PARTIAL: tl.constexpr, WEIGHT: tl.constexpr, TARGET_SCORE: tl.constexpr,
    SCALE: tl.constexpr, LABEL: tl.constexpr, LABEL_TARGET: tl.constexpr, SUMS: tl.constexpr, LABEL_SUMS: tl.constexpr,
    HEADS_BLOCK: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    span, here, row, begin, end = spans_of(first, last, owner, size, limit, OWNED, ROWS)
    head = tl.arange(0, HEADS_BLOCK)
    is_head = head < HEADS
    mask = here[:, None] & is_head[None, :]
    at_row = row[:, None] * HEADS + head[None, :]
    row_score = tl.load(source + at_row, mask=mask, other=0.0)
    if LABEL:
        # with the row: after the edges it would be waited for once more
        y = tl.load(label_of + row, mask=here, other=-1)
        shows = y >= 0
        if PARTIAL:
            # of a row in chunks, the first one has its label
            shows = shows & (tl.load(rowptr + row, mask=here, other=0) == begin)
    total = tl.zeros([ROWS, HEADS_BLOCK], dtype=tl.float32)
    for start in range(0, tl.max(end - begin, 0), EDGES):
        k = (begin[:, None] + start + tl.arange(0, EDGES)[None, :]).to(tl.int64)
        inside = k < end[:, None]
        i = tl.load(col + k, mask=inside, other=0).to(tl.int64)
        both = inside[:, :, None] & is_head[None, None, :]
        at_col = i[:, :, None] * HEADS + head[None, None, :]
        score = tl.zeros([ROWS, EDGES, HEADS_BLOCK], dtype=tl.float32) + row_score[:, None, :]
        if TARGET_SCORE:
            score += tl.load(target + at_col, mask=both, other=0.0)
        share = tl.exp(leaky(score, slope) - tl.load(log_denominator + at_col, mask=both, other=0.0))
        if WEIGHT:
            share *= tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)[:, :, None]
        at_dot = i[:, :, None] * (SUMS * HEADS) + head[None, None, :]
        change = tl.load(product + k[:, :, None] * HEADS + head[None, None, :], mask=both, other=0.0)
        change -= share * tl.load(dot + at_dot, mask=both, other=0.0)
        total += tl.sum(tl.where(both, change * tl.where(score > 0, 1.0, slope), 0.0), 1)
    if SCALE:
        total *= tl.load(score_scale + row, mask=here, other=0.0).to(tl.float32)[:, None]
    if LABEL:
        shown = shows[:, None] & is_head[None, :]
        at_label = y[:, None] * HEADS + head[None, :]
        score = tl.load(label_source + at_row, mask=shown, other=0.0)
        if LABEL_TARGET:
            score += tl.load(label_target + at_label, mask=shown, other=0.0)
        share = tl.exp(leaky(score, slope) - tl.load(label_log + at_label, mask=shown, other=0.0))
        at_dot = y[:, None] * (LABEL_SUMS * HEADS) + head[None, :]
        change = tl.load(label_product + at_row, mask=shown, other=0.0)
        change -= share * tl.load(label_dot + at_dot, mask=shown, other=0.0)
        total += tl.where(shown, change * tl.where(score > 0, 1.0, slope), 0.0)
    to = row
    if PARTIAL:
        to = span.to(tl.int64)
    tl.store(out + to[:, None] * stride + head[None, :], total.to(out.dtype.element_ty), mask=mask)


def target_sums(adjacency: Adjacency, attention: AttentionInputs, product: Tensor, position: Tensor) -> Tensor:
    """Returns the sums over the edges of each target that gradients of scores are made of, `[targets, sums, heads]`.

    With `σ'` the slope of the LeakyReLU at a score, and `p_ij` what an edge has in `product`, `α_ij` times its
    gradient, they are `Σ_j p_ij`, `Σ_j σ'_ij p_ij` and `Σ_j σ'_ij α_ij`; the first alone if scores do not depend on
    targets. Edge `e` has row `place[e]` of `product`.
    """
    heads, has_target = attention.config.heads, attention.target is not None
    sums = 3 if has_target else 1
    out = product.new_empty(adjacency.num_rows, sums * heads)

    def launch(rows: Programs, to: Tensor) -> None:
        tile = tile_of(rows, heads)
        _target_sums[grid_of(rows, tile)](
            rows.first, rows.last, rows.owner, position, adjacency.col, adjacency.weight,
            attention.source, attention.target, attention.log_denominator, product, to, rows.size, rows.limit,
            attention.config.negative_slope, PARTIAL=rows.partial, WEIGHT=adjacency.weight is not None,
            TARGET_SCORE=has_target, SUMS=sums, **tile, num_warps=4,
        )  # fmt: skip

    launch_rows(adjacency, launch, out)
    return out.unflatten(1, (sums, heads))


def write_target_gradients(sums: Tensor, out: Tensor) -> None:
    """Writes `Σ_j σ'_ij (p_ij - α_ij Σ_k p_ik)` from `target_sums` into the first columns of `out`, zeros elsewhere."""
    targets, kinds, heads = sums.shape
    if out.numel():
        _target_gradients[(triton.cdiv(out.size(0), TARGETS),)](
            sums, out, targets, out.size(0), out.stride(0), HEADS=heads, TARGET_SCORE=kinds == 3, COLUMNS=out.size(1),
            COLUMNS_BLOCK=triton.next_power_of_2(out.size(1)), ROWS=TARGETS, num_warps=4,
        )  # fmt: skip


def score_gradient(
    transposed: Adjacency, attention: AttentionInputs, sums: Tensor, product: Tensor, scale: Tensor | None,
    of_labels: Sequence[Tensor | None], out: Tensor,
) -> None:  # fmt: skip
    """Writes the gradients of the source scores into `out` `[sources, heads]`: times `scale`, and those of the labels.

    Args:
        of_labels: the label of each source, -1 for none; of the relation to labels, the scores of sources and targets
            and the log-denominator; its `target_sums`, and `[sources, heads]` `α_ij` times its gradient. Or only None.
    """
    label_sums = of_labels[4]

    def launch(rows: Programs, to: Tensor) -> None:
        tile = tile_of(rows, attention.config.heads)
        _score_gradient[grid_of(rows, tile)](
            rows.first, rows.last, rows.owner, transposed.rowptr, transposed.col, transposed.weight, attention.source,
            attention.target, attention.log_denominator, sums, product, scale, to, *of_labels, rows.size, rows.limit,
            attention.config.negative_slope, to.stride(0), PARTIAL=rows.partial, WEIGHT=transposed.weight is not None,
            TARGET_SCORE=attention.target is not None, SCALE=scale is not None, LABEL=label_sums is not None,
            LABEL_TARGET=of_labels[2] is not None, SUMS=sums.size(1),
            LABEL_SUMS=0 if label_sums is None else label_sums.size(1), **tile, num_warps=4,
        )  # fmt: skip

    launch_rows(transposed, launch, out)
