"""Neighbor sampling on a GPU, in Triton.

A row has at most `fanout` edges, so that memory is allocated before their number is known, and a layer synchronizes
once, to read all of its sizes. New nodes are marked in an array over all nodes and numbered by a cumulative sum over
it, in the order of their ids: that takes less time than sorting the edges, and is deterministic, which an atomic
counter is not.

Threads sample batches of one epoch at the same time, and Triton does not expect two of them to launch a kernel for the
first time: no kernel is compiled anew for a number that differs between these batches (`do_not_specialize`).
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.hashing import LABELS
from legnn.ops.runtime.hashing_triton import mix
from legnn.ops.runtime.launch import launched
from legnn.ops.sample.types import DrawnLayer, Fanout, SampledNodes, SamplingRows

NOT_READ = 2**30
BLOCK = 1024
"""Entries of a program that handles each entry by itself."""
TILE = 1024
"""Entries of a program that draws: rows times edges of a row."""


@launched
@triton.jit(do_not_specialize=["count"])
def _number_seeds(nodes, number, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    tl.store(number + tl.load(nodes + i, mask=inside, other=0), i + 1, mask=inside)


@launched
@triton.jit(do_not_specialize=["num_targets", "total", "seeds", "step", "fanout"])
def _count(
    rowptr, targets, class_rowptr, label_of, read, first, edge_count, count, num_targets, total, seeds, step, fanout,
    ALL_LABELS: tl.constexpr, LIMITED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
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
    y = tl.load(label_of + node, mask=is_node & (r >= seeds), other=-1)
    unread = tl.load(read + y, mask=y >= 0, other=-1) > step
    # all programs that write to the same address write the same number
    tl.store(read + y, step + tl.zeros_like(y), mask=unread)


@triton.jit
def _take(
    at, to, there, is_node, labels, col, class_col, gaps, num_gaps, number, source, edge,
    GAP_STEPS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Copy the entries `at` of the rows to the positions `to`, and mark those of their nodes that are new with -1."""
    node = tl.load(col + at, mask=there & is_node, other=0)
    if labels:
        is_label = there & (is_node == 0)
        low = tl.zeros_like(at)
        high = tl.zeros_like(at) + num_gaps
        for _ in range(GAP_STEPS):
            searching = is_label & (low < high)
            middle = (low + high) // 2
            passed = tl.load(gaps + middle, mask=searching, other=0) <= at
            low = tl.where(searching & passed, middle + 1, low)
            high = tl.where(searching & (passed == 0), middle, high)
        at += low
        of_label = tl.load(class_col + at, mask=is_label, other=0).to(node.dtype)
        node = tl.where(is_label, of_label, node)
    tl.store(source + to, node, mask=there)
    if EDGE:
        tl.store(edge + to, at, mask=there)
    # all programs that write to the same address write the same number
    new = there & (tl.load(number + node, mask=there, other=1) == 0)
    tl.store(number + node, tl.full(node.shape, -1, tl.int32), mask=new)


@launched
@triton.jit(do_not_specialize=["num_targets", "total", "num_gaps", "low", "label_low", "high"])
def _draw(
    targets, first, edge_count, pointer, col, class_col, gaps, number, source, edge, num_targets, total, num_gaps,
    low, label_low, high,
    FANOUT: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, GAP_STEPS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = r < total
    is_node = r < num_targets
    row = tl.where(is_node, tl.load(targets + r, mask=is_node, other=0), (r - num_targets).to(tl.int64))
    degree = tl.load(edge_count + r, mask=inside, other=0)
    key = tl.where(is_node, low.to(tl.uint32), label_low.to(tl.uint32))
    key = mix(row.to(tl.uint32) ^ key) ^ high.to(tl.uint32)
    # Floyd's method, as in reference.draw_edges
    column = tl.arange(0, WIDTH)
    taken = tl.full([ROWS, WIDTH], -1, tl.int64)
    last = degree - FANOUT
    for i in range(FANOUT):
        pick = (mix(key).to(tl.int64) * (last + 1)) >> 32
        again = tl.max((taken == pick[:, None]).to(tl.int32), 1) > 0
        taken = tl.where((column == i)[None, :], tl.where(again, last, pick)[:, None], taken)
        last += 1
        key += 0x9E3779B9
    # a row with `FANOUT` edges or fewer gives all of them
    taken = tl.where((degree <= FANOUT)[:, None], column[None, :].to(tl.int64), taken)
    there = (column[None, :] < FANOUT) & (column[None, :] < degree[:, None])
    at = tl.load(first + r, mask=inside, other=0)[:, None] + taken
    to = tl.load(pointer + r, mask=inside, other=0).to(tl.int64)[:, None] + column[None, :]
    labels = (tl.program_id(0) + 1) * ROWS > num_targets
    _take(
        at, to, there, is_node[:, None], labels, col, class_col, gaps, num_gaps, number, source, edge, GAP_STEPS, EDGE
    )


@launched
@triton.jit(do_not_specialize=["num_targets", "drawn", "num_gaps"])
def _copy(
    owner, first, pointer, col, class_col, gaps, number, source, edge, num_targets, drawn, num_gaps,
    GAP_STEPS: tl.constexpr, EDGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    to = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = to < drawn
    r = tl.load(owner + to, mask=there, other=0)
    at = tl.load(first + r, mask=there, other=0) + to - tl.load(pointer + r, mask=there, other=0).to(tl.int64)
    labels = tl.max(r, 0) >= num_targets
    _take(at, to, there, r < num_targets, labels, col, class_col, gaps, num_gaps, number, source, edge, GAP_STEPS, EDGE)


@launched
@triton.jit
def _pack(number, label_of, packed, size, BLOCK: tl.constexpr):
    """Write 1 for a new node, and 2³² more if it shows a label: one cumulative sum numbers both."""
    node = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = node < size
    is_new = tl.load(number + node, mask=inside, other=0) == -1
    shows = is_new & (tl.load(label_of + node, mask=inside, other=-1) >= 0)
    tl.store(packed + node, is_new.to(tl.int64) + (shows.to(tl.int64) << 32), mask=inside)


@launched
@triton.jit(do_not_specialize=["known", "num_targets", "total"])
def _assign(
    number, label_of, running, pointer, sizes, nodes, shown, y, known, num_targets, total, size, BLOCK: tl.constexpr
):
    node = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_new = tl.load(number + node, mask=node < size, other=0) == -1
    count = tl.load(running + node, mask=is_new, other=1)
    new = (count & 0xFFFFFFFF) - 1
    tl.store(nodes + new, node, mask=is_new)
    tl.store(number + node, (known + new + 1).to(tl.int32), mask=is_new)
    label = tl.load(label_of + node, mask=is_new, other=-1)
    shows = is_new & (label >= 0)
    tl.store(shown + (count >> 32) - 1, known + new, mask=shows)
    tl.store(y + (count >> 32) - 1, label.to(tl.int64), mask=shows)
    if tl.program_id(0) == 0:
        # all sizes side by side, to be read in one copy
        tl.store(sizes, tl.load(running + size - 1))
        tl.store(sizes + 1, tl.load(pointer + num_targets).to(tl.int64))
        tl.store(sizes + 2, tl.load(pointer + total).to(tl.int64))


@launched
@triton.jit(do_not_specialize=["count"])
def _look_up_numbers(source, number, col, count, BLOCK: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = e < count
    node = tl.load(source + e, mask=inside, other=0)
    tl.store(col + e, tl.load(number + node, mask=inside, other=1) - 1, mask=inside)


@launched
@triton.jit(do_not_specialize=["seeds", "count"])
def _look_up(nodes, label_of, degree, node_labels, node_degrees, number, seeds, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    node = tl.load(nodes + i, mask=inside, other=0)
    tl.store(node_labels + i, tl.load(label_of + node, mask=inside & (i >= seeds), other=-1), mask=inside)
    tl.store(node_degrees + i, tl.load(degree + node, mask=inside, other=0.0), mask=inside)
    tl.store(number + node, tl.zeros_like(i), mask=inside)


def _signed(word: int) -> int:
    """A 32-bit word as a signed number: for a larger one Triton would compile another kernel."""
    word &= 0xFFFFFFFF
    return word - 2**32 if word >= 2**31 else word


def _grid(count: int) -> tuple[int]:
    # at least one: in some kernels the first program does more than its share; `triton.cdiv` takes the host 3 µs
    return (max(-(-count // BLOCK), 1),)


class TritonSampler:
    """`Sampler` for a CUDA device."""

    def __init__(self, rows: SamplingRows, seeds: Tensor, number: Tensor) -> None:
        self._rows, self._num_seeds, self._number = rows, seeds.numel(), number
        # the layer, in the order drawn, that is the first to read a label
        self._read = torch.full((rows.num_classes,), NOT_READ, dtype=torch.int32, device=number.device)
        self._nodes = seeds.contiguous()
        self._shown: list[Tensor] = []
        self._y: list[Tensor] = []
        self._shown_by_targets: list[int] = []
        _number_seeds[_grid(seeds.numel())](self._nodes, number, seeds.numel(), BLOCK=BLOCK)

    def _empty(self, size: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(size, dtype=dtype, device=self._number.device)

    def draw_layer(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> DrawnLayer:
        """See `Sampler`."""
        rows, targets = self._rows, self._nodes.numel()
        total = targets + rows.num_classes
        most = rows.col.numel() + rows.class_col.numel() if fanout is None else total * fanout
        first, edge_count = self._empty(total, torch.int64), self._empty(total, torch.int64)
        index_type = torch.int32 if most < 2**31 else torch.int64
        pointer = torch.zeros(total + 1, dtype=index_type, device=self._number.device)
        count = torch.empty_like(pointer[1:])
        _count[_grid(total)](
            rows.rowptr, self._nodes, rows.class_rowptr, rows.label_of, self._read, first, edge_count, count,
            targets, total, self._num_seeds, len(self._shown_by_targets), 0 if fanout is None else fanout,
            ALL_LABELS=rows.reads_all_labels and bool(self._shown_by_targets), LIMITED=fanout is not None, BLOCK=BLOCK,
        )  # fmt: skip
        torch.cumsum(count, 0, dtype=pointer.dtype, out=pointer[1:])
        if fanout is None:
            most = int(pointer[-1])
        source = self._empty(most, rows.col.dtype)
        edge = self._empty(most if edges else 0, torch.int64)
        common = (rows.col, rows.class_col, rows.gaps, self._number, source, edge)
        # one number for batches of a power of two of seeds, and of one less, which are in the same epoch
        gap_steps = (rows.gaps.numel() - 1).bit_length() + 1
        if fanout is None and most:
            owner = torch.repeat_interleave(count, output_size=most)
            _copy[_grid(most)](
                owner, first, pointer, *common, targets, most, rows.gaps.numel(),
                GAP_STEPS=gap_steps, EDGE=edges, BLOCK=BLOCK,
            )  # fmt: skip
        elif fanout is not None and most:
            width = triton.next_power_of_2(fanout)
            many = max(TILE // width, 1)
            low, high = key
            _draw[(-(-total // many),)](
                self._nodes, first, edge_count, pointer, *common, targets, total, rows.gaps.numel(),
                _signed(low), _signed(low ^ LABELS), _signed(high),
                FANOUT=fanout, WIDTH=width, ROWS=many, GAP_STEPS=gap_steps, EDGE=edges,
            )  # fmt: skip
        drawn, num_edges = self._number_new_nodes(pointer, most, targets, total)
        col = self._empty(drawn, torch.int32)
        _look_up_numbers[_grid(drawn)](source, self._number, col, drawn, BLOCK=BLOCK)
        return DrawnLayer(pointer, col, edge[:drawn] if edges else None, edge_count[:targets], num_edges, targets)

    def _number_new_nodes(self, pointer: Tensor, most: int, targets: int, total: int) -> tuple[int, int]:
        """Numbers the nodes marked as new; returns how many edges were drawn, and how many of them for nodes."""
        size = self._number.numel()
        packed = self._empty(size, torch.int64)
        _pack[_grid(size)](self._number, self._rows.label_of, packed, size, BLOCK=BLOCK)
        running = torch.cumsum(packed, 0)
        most = min(most, size)
        nodes, shown, y = (self._empty(most, torch.int64) for _ in range(3))
        sizes = self._empty(3, torch.int64)
        _assign[_grid(size)](
            self._number, self._rows.label_of, running, pointer, sizes, nodes, shown, y, targets, targets, total, size,
            BLOCK=BLOCK,
        )  # fmt: skip
        # the one synchronization of a layer
        counted, num_edges, drawn = sizes.tolist()
        new, showing = counted & 0xFFFFFFFF, counted >> 32
        self._nodes = torch.cat([self._nodes, nodes[:new]])
        self._shown_by_targets.append(sum(part.numel() for part in self._shown))
        self._shown.append(shown[:showing])
        self._y.append(y[:showing])
        return drawn, num_edges

    def finish(self) -> SampledNodes:
        """See `Sampler`."""
        count, degree = self._nodes.numel(), self._rows.degree
        node_labels, node_degrees = self._empty(count, torch.int32), self._empty(count, degree.dtype)
        _look_up[_grid(count)](
            self._nodes, self._rows.label_of, degree, node_labels, node_degrees, self._number, self._num_seeds, count,
            BLOCK=BLOCK,
        )  # fmt: skip
        # no layer may have been drawn
        shown, y = (torch.cat([self._nodes[:0], *parts]) for parts in (self._shown, self._y))
        return SampledNodes(self._nodes, node_labels, node_degrees, shown, y, self._shown_by_targets)
