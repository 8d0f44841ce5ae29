"""Kernels that draw the edges of one layer of a sample and number its nodes, in Triton.

They never read a size back: how many edges were drawn and how many nodes are new is counted on the device. New nodes
are marked in an array over all nodes, counted block by block, and numbered in the order of their ids by the sum of the
blocks before: that takes less time than sorting the edges, and is deterministic, which an atomic counter is not.

Threads may sample at the same time, and Triton does not expect two of them to launch a kernel for the first
time: no kernel is compiled anew for a number that differs between batches (`do_not_specialize`).
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime import hashing
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.sample.types import SamplingView

LABELS, GOLDEN = tl.constexpr(hashing.LABELS), tl.constexpr(hashing.GOLDEN)
NOT_READ = tl.constexpr(2**30)
BLOCK = 1024
"""Entries of a program that handles each entry by itself."""
TILE = 1024
"""Entries of a program that draws: rows times edges of a row."""
ADDED, EDGES, SENDERS, SHOWN = (tl.constexpr(position) for position in range(4))
"""Positions of the counts of a layer: new nodes, edges of its targets, edges of labels, new nodes that show a label."""


class Drawn(NamedTuple):
    """The rows of one layer, and where their edges are written to."""

    view: SamplingView
    targets: Tensor
    """`[R]` the nodes; the labels are the rows after them."""
    first: Tensor
    """`[R + C]` the first edge of each row."""
    edge_count: Tensor
    """`[R + C]` how many edges a row has."""
    pointer: Tensor
    """`[R + C + 1]` the position of the first edge drawn of each row."""
    number: Tensor
    """`[M]` the number of each node in the sample from 1 on, 0 for none, and -1 for one that is drawn just now."""
    source: Tensor
    """`[E]` or longer."""
    edge: Tensor | None


@triton.jit(do_not_specialize=["num_targets", "total", "seeds", "step", "fanout"])
def count_edges(
    rowptr, targets, class_rowptr, label_of, read, first, edge_count, count, pointer,
    num_targets, total, seeds, step, fanout,
    ALL_LABELS: tl.constexpr, LIMITED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write how many edges each row has and draws, and mark the labels that targets read with `step`."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = r < total
    is_node = r < num_targets
    is_label = inside & (r >= num_targets)
    node = tl.load(targets + r, mask=is_node, other=0)
    begin = tl.load(rowptr + node, mask=is_node, other=0).to(tl.int64)
    degree = tl.load(rowptr + node + 1, mask=is_node, other=0).to(tl.int64) - begin
    label = r - num_targets
    # a label that this very layer reads is not drawn for: another program may mark it with `step`, which is no less
    drawn = is_label & ((tl.load(read + label, mask=is_label, other=0) < step) | ALL_LABELS)
    label_begin = tl.load(class_rowptr + label, mask=is_label, other=0).to(tl.int64)
    label_end = tl.load(class_rowptr + label + 1, mask=drawn, other=0).to(tl.int64)
    degree = tl.where(drawn, label_end - label_begin, degree)
    tl.store(first + r, tl.where(is_label, label_begin, begin), mask=inside)
    tl.store(edge_count + r, degree, mask=inside)
    drawn_edges = degree
    if LIMITED:
        drawn_edges = tl.minimum(degree, fanout)
    tl.store(count + r, drawn_edges.to(count.dtype.element_ty), mask=inside)
    y = tl.load(label_of + node, mask=is_node, other=-1)
    y = tl.where(r < seeds, -1, y)
    unread = tl.load(read + y, mask=y >= 0, other=-1) > step
    # all programs that write to the same address write the same number
    tl.store(read + y, step + tl.zeros_like(y), mask=unread)
    if tl.program_id(0) == 0:
        tl.store(pointer, 0)


@triton.jit
def _take(
    at, to, valid, is_node, labels, col, class_col, excluded, num_excluded, number, source, edge,
    SEARCH_STEPS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Copy the entries `at` of the rows to the positions `to`, and mark those of their nodes that are new with -1."""
    node = tl.load(col + at, mask=valid & is_node, other=0)
    if labels:
        is_label = valid & (is_node == 0)
        low = tl.zeros_like(at)
        high = tl.zeros_like(at) + num_excluded
        for _ in range(SEARCH_STEPS):
            searching = is_label & (low < high)
            middle = (low + high) // 2
            passed = tl.load(excluded + middle, mask=searching, other=0) <= at
            low = tl.where(searching & passed, middle + 1, low)
            high = tl.where(searching & (passed == 0), middle, high)
        at += low
        of_label = tl.load(class_col + at, mask=is_label, other=0).to(node.dtype)
        node = tl.where(is_label, of_label, node)
    tl.store(source + to, node, mask=valid)
    if EDGE:
        tl.store(edge + to, at, mask=valid)
    # all programs that write to the same address write the same number
    new = valid & (tl.load(number + node, mask=valid, other=1) == 0)
    tl.store(number + node, tl.full(node.shape, -1, tl.int32), mask=new)


@triton.jit(do_not_specialize=["num_targets", "total", "num_excluded", "capacity", "low", "high"])
def _draw(
    targets, first, edge_count, pointer, col, class_col, excluded, number, source, edge,
    num_targets, total, num_excluded, capacity, low, high,
    FANOUT: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, SEARCH_STEPS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = r < total
    is_node = r < num_targets
    row = tl.where(is_node, tl.load(targets + r, mask=is_node, other=0), (r - num_targets).to(tl.int64))
    degree = tl.load(edge_count + r, mask=inside, other=0)
    word = low.to(tl.uint32)
    word = mix(row.to(tl.uint32) ^ tl.where(is_node, word, word ^ LABELS))
    word = word ^ high.to(tl.uint32)
    # Floyd's method, as in reference.draw_edges
    column = tl.arange(0, WIDTH)
    picked = tl.full([ROWS, WIDTH], -1, tl.int64)
    last = degree - FANOUT
    for i in range(FANOUT):
        pick = (mix(word).to(tl.int64) * (last + 1)) >> 32
        again = tl.max((picked == pick[:, None]).to(tl.int32), 1) > 0
        picked = tl.where((column == i)[None, :], tl.where(again, last, pick)[:, None], picked)
        last += 1
        word += GOLDEN
    # a row with `FANOUT` edges or fewer gives all of them
    picked = tl.where((degree <= FANOUT)[:, None], column[None, :].to(tl.int64), picked)
    at = tl.load(first + r, mask=inside, other=0)[:, None] + picked
    to = tl.load(pointer + r, mask=inside, other=0).to(tl.int64)[:, None] + column[None, :]
    valid = (column[None, :] < FANOUT) & (column[None, :] < degree[:, None]) & (to < capacity)
    labels = (tl.program_id(0) + 1) * ROWS > num_targets
    _take(
        at, to, valid, is_node[:, None], labels, col, class_col, excluded, num_excluded, number, source, edge,
        SEARCH_STEPS, EDGE,
    )  # fmt: skip


@triton.jit(do_not_specialize=["num_targets", "drawn", "num_excluded"])
def _copy(
    owner, first, pointer, col, class_col, excluded, number, source, edge, num_targets, drawn, num_excluded,
    SEARCH_STEPS: tl.constexpr, EDGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    to = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    valid = to < drawn
    r = tl.load(owner + to, mask=valid, other=0)
    at = tl.load(first + r, mask=valid, other=0) + to - tl.load(pointer + r, mask=valid, other=0).to(tl.int64)
    labels = tl.max(r, 0) >= num_targets
    _take(
        at, to, valid, r < num_targets, labels, col, class_col, excluded, num_excluded, number, source, edge,
        SEARCH_STEPS, EDGE,
    )  # fmt: skip


@triton.jit
def _new_nodes(number, label_of, node, size):
    """Labels of new nodes, and 1 for each, with 2³² more where it shows one: one sum counts both."""
    is_new = tl.load(number + node, mask=node < size, other=0) == -1
    label = tl.load(label_of + node, mask=is_new, other=-1)
    return is_new, label, is_new.to(tl.int64) + ((label >= 0).to(tl.int64) << 32)


@triton.jit
def _count_new(number, label_of, counted, size, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    node = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    _, _, packed = _new_nodes(number, label_of, node, size)
    tl.store(counted + program + 1, tl.sum(packed, 0))
    if program == 0:
        tl.store(counted, 0)


@triton.jit(do_not_specialize=["num_targets", "total"])
def _assign(
    number, label_of, before, pointer, counts, nodes, shown, y,
    num_targets, total, size, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    node = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_new, label, packed = _new_nodes(number, label_of, node, size)
    count = tl.load(before + program) + tl.cumsum(packed, 0)
    new = (count & 0xFFFFFFFF) - 1
    tl.store(nodes + new, node, mask=is_new)
    tl.store(number + node, (num_targets + new + 1).to(tl.int32), mask=is_new)
    position = (count >> 32) - 1
    tl.store(shown + position, num_targets + new, mask=label >= 0)
    tl.store(y + position, label.to(tl.int64), mask=label >= 0)
    if program == 0:
        counted = tl.load(before + tl.num_programs(0))
        edges = tl.load(pointer + num_targets).to(tl.int64)
        tl.store(counts + ADDED, counted & 0xFFFFFFFF)
        tl.store(counts + EDGES, edges)
        tl.store(counts + SENDERS, tl.load(pointer + total).to(tl.int64) - edges)
        tl.store(counts + SHOWN, counted >> 32)


def grid_for(count: int) -> tuple[int]:
    """Programs of `BLOCK` entries, one at least: in some kernels the first does more than its share."""
    # `triton.cdiv` takes the host 3 µs
    return (max(-(-count // BLOCK), 1),)


def signed(word: int) -> int:
    """A 32-bit word as a signed number: for a larger one Triton would compile another kernel."""
    word &= 0xFFFFFFFF
    return word - 2**32 if word >= 2**31 else word


def draw_rows(rows: Drawn, key: tuple[int, int], fanout: int) -> None:
    """Draws `fanout` edges of each row to `source` and `edge`, as two 32-bit words of `key` say."""
    view, num_targets = rows.view, rows.targets.numel()
    total = num_targets + view.num_classes
    width = triton.next_power_of_2(fanout)
    many = max(TILE // width, 1)
    _draw[(-(-total // many),)](
        rows.targets, rows.first, rows.edge_count, rows.pointer, view.col, view.class_col, view.excluded_positions,
        rows.number, rows.source, rows.edge, num_targets, total, view.excluded_positions.numel(),
        rows.source.numel(), *map(signed, key),
        FANOUT=fanout, WIDTH=width, ROWS=many, SEARCH_STEPS=_search_steps(view), EDGE=rows.edge is not None,
    )  # fmt: skip


def copy_rows(rows: Drawn, count: Tensor) -> None:
    """Copies all edges of each row, `count` of them, to `source` and `edge`."""
    view, drawn = rows.view, rows.source.numel()
    owner = torch.repeat_interleave(count, output_size=drawn)
    _copy[grid_for(drawn)](
        owner, rows.first, rows.pointer, view.col, view.class_col, view.excluded_positions, rows.number, rows.source,
        rows.edge, rows.targets.numel(), drawn, view.excluded_positions.numel(), SEARCH_STEPS=_search_steps(view),
        EDGE=rows.edge is not None, BLOCK=BLOCK,
    )  # fmt: skip


def _search_steps(rows: SamplingView) -> int:
    # one number for batches of a power of two of seeds, and of one less, which are in the same epoch
    return (rows.excluded_positions.numel() - 1).bit_length() + 1 if rows.excluded_positions.numel() else 0


def number_new_nodes(rows: Drawn) -> tuple[Tensor, int, int, Tensor, Tensor]:
    """Numbers the nodes marked as new, after the targets.

    Returns the new nodes, how many edges of targets and how many of labels were drawn, and the numbers and labels of
    the new nodes that show one.
    """
    label_of, number, num_targets = rows.view.label_of, rows.number, rows.targets.numel()
    size = number.numel()
    grid = grid_for(size)
    counted = torch.empty(grid[0] + 1, dtype=torch.int64, device=number.device)
    _count_new[grid](number, label_of, counted, size, BLOCK=BLOCK)
    most = min(rows.source.numel(), size)
    nodes, shown, y = torch.empty(3, most, dtype=torch.int64, device=number.device)
    counts = torch.empty(4, dtype=torch.int64, device=number.device)
    _assign[grid](
        number, label_of, counted.cumsum(0), rows.pointer, counts, nodes, shown, y, num_targets,
        num_targets + rows.view.num_classes, size, BLOCK=BLOCK,
    )  # fmt: skip
    new, num_edges, senders, showing = read_counts(counts)
    return nodes[:new], num_edges, senders, shown[:showing], y[:showing]


def read_counts(counts: Tensor) -> list[int]:
    """The one synchronization of a layer."""
    numbers: list[int] = counts.tolist()
    return numbers
