"""Samples drawn into memory of fixed sizes on a GPU, in Triton: nothing is read back, so that it can be captured.

A node gets its place in the padded sample when it is numbered. The values are those of `graph.padding.pad_sample` of a
sample that `TritonSampler` draws; `graph.padded_sampling` compares what was counted with what there was room for.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence
from itertools import accumulate

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.csr.padded import PaddedAdjacency, PaddedLabelEdges
from legnn.ops.runtime.launch import fast_launch
from legnn.ops.sample.triton_drawing import (
    ADDED,
    BLOCK,
    COUNTS,
    EDGES,
    NOT_READ,
    SENDERS,
    SHOWN,
    count_edges,
    draw_rows,
    grid_for,
    number_new_nodes,
)
from legnn.ops.sample.types import BlockSizes, PaddedNodes, PaddedRows, PaddedSample, SamplingRows


@triton.jit
def _write_node(
    place, node, real, inside, label, degree, types, nodes, node_degree, node_label, node_type, is_real,
    TYPED: tl.constexpr,
):  # fmt: skip
    tl.store(nodes + place, node, mask=inside)
    tl.store(node_degree + place, tl.load(degree + node, mask=inside, other=0.0), mask=inside)
    tl.store(node_label + place, label, mask=inside)
    if TYPED:
        tl.store(node_type + place, tl.load(types + node, mask=inside, other=0), mask=inside)
    tl.store(is_real + place, real.to(tl.uint8), mask=inside)


@fast_launch
@triton.jit(do_not_specialize=["count", "num_classes", "num_counts"])
def _begin(
    seeds, class_rowptr, number, read, shown_count, counts,
    degree, types, nodes, node_degree, node_label, node_type, is_real, count, num_classes, num_counts,
    TYPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    node = tl.load(seeds + i, mask=inside, other=0)
    tl.store(number + node, i + 1, mask=inside)
    label = tl.full(i.shape, -1, tl.int32)
    _write_node(
        i, node, inside, inside, label, degree, types, nodes, node_degree, node_label, node_type, is_real, TYPED
    )
    is_class = i < num_classes
    tl.store(read + i, tl.full(i.shape, NOT_READ, tl.int32), mask=is_class)
    begin = tl.load(class_rowptr + i, mask=is_class, other=0)
    tl.store(
        shown_count + i, (tl.load(class_rowptr + i + 1, mask=is_class, other=0) - begin).to(tl.int64), mask=is_class
    )
    tl.store(counts + i, tl.zeros_like(i).to(tl.int64), mask=i < num_counts)


@triton.jit
def _write_label_edges(i, there, node, label, shown, y, key, size, last, num_classes):
    """Write label edges, and padding edges from the node `last`."""
    inside = i < size
    tl.store(shown + i, tl.where(there, node, last).to(tl.int64), mask=inside)
    tl.store(y + i, tl.where(there, label, 0).to(tl.int64), mask=inside)
    tl.store(key + i, tl.where(there, label, num_classes).to(tl.int64), mask=inside)


@fast_launch
@triton.jit(
    do_not_specialize=["step", "targets", "added", "edges", "senders", "showing", "num_classes"],
)
def _finish_layer(
    source, edge, weights, number, label_of, all_shown, all_y, counts,
    degree, types, nodes, node_degree, node_label, node_type, is_real,
    col, weight, sender, sender_y, sender_key, shown, shown_y, shown_key,
    step, targets, added, edges, senders, showing, num_classes,
    COUNTS: tl.constexpr, WEIGHTED: tl.constexpr, TYPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the nodes that a layer adds, its edges by the places of their nodes, and padding after all of them."""
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    layer = counts + step * COUNTS
    drawn = tl.load(layer + EDGES)
    sources = targets + added
    if start < added:
        real = i < tl.load(layer + ADDED)
        inside = i < added
        node = tl.load(nodes + targets + i, mask=inside & real, other=0)
        node = tl.where(real, node, tl.load(nodes))
        label = tl.load(label_of + node, mask=inside & real, other=-1)
        _write_node(
            targets + i, node, real, inside, label, degree, types, nodes, node_degree, node_label, node_type, is_real,
            TYPED,
        )  # fmt: skip
    if start < edges:
        there = (i < drawn) & (i < edges)
        node = tl.load(source + i, mask=there, other=0)
        place = tl.load(number + node, mask=there, other=0) - 1
        tl.store(col + i, tl.where(there, place, sources), mask=i < edges)
        if WEIGHTED:
            at = tl.load(edge + i, mask=there, other=0)
            tl.store(weight + i, tl.load(weights + at, mask=there, other=0.0), mask=i < edges)
    if start < senders:
        there = (i < tl.load(layer + SENDERS)) & (drawn + i < edges + senders)
        node = tl.load(source + drawn + i, mask=there, other=0)
        place = tl.load(number + node, mask=there, other=0) - 1
        label = tl.load(label_of + node, mask=there, other=0)
        _write_label_edges(i, there, place, label, sender, sender_y, sender_key, senders, sources - 1, num_classes)
    if start < showing:
        there = (i < tl.load(layer + SHOWN)) & (i < showing)
        place = tl.load(all_shown + i, mask=there, other=0)
        label = tl.load(all_y + i, mask=there, other=0)
        _write_label_edges(i, there, place, label, shown, shown_y, shown_key, showing, targets - 1, num_classes)


@fast_launch
@triton.jit(do_not_specialize=["step", "size", "showing", "num_classes"])
def _end(
    nodes, number, counts, shown, y, key, step, size, showing, num_classes, COUNTS: tl.constexpr, BLOCK: tl.constexpr
):
    """Forget the numbers of all nodes, and write padding after the labels that input nodes show."""
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    inside = i < size
    tl.store(number + tl.load(nodes + i, mask=inside, other=0), tl.zeros_like(i), mask=inside)
    if start < showing:
        there = (i < tl.load(counts + step * COUNTS + SHOWN)) & (i < showing)
        place = tl.load(shown + i, mask=there, other=0)
        label = tl.load(y + i, mask=there, other=0)
        _write_label_edges(i, there, place, label, shown, y, key, showing, size - 1, num_classes)


def draw_padded(
    rows: SamplingRows,
    weight: Tensor | None,
    node_type: Tensor | None,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Tensor,
    blocks: Sequence[BlockSizes],
    shown: int,
    number: Tensor,
) -> PaddedSample:
    """Draws a sample without reading anything back.

    Args:
        rows: its class rows have all nodes that show a label, seeds included, and no gaps.
        weight: `[edges]`; None if every edge weighs 1.
        node_type: `[M]` if nodes are of several types.
        seeds: int64 `[B]`, each once, at least one.
        fanouts: of each block, from the input on.
        key: int64 `[2]`, two 32-bit words.
        blocks: the sizes there is room for, of each block from the input on.
        shown: the same of labels that input nodes show.
        number: int32 `[M]`, zeros, which it is again when all kernels have run.
    """
    drawing = _Drawing(rows, weight, node_type, seeds, key, blocks, shown, number)
    # the last layer is drawn first
    layers = [drawing.draw_layer(step, fanout) for step, fanout in enumerate(reversed(fanouts))]
    return drawing.finish(layers[::-1])


class _Drawing:
    """A padded sample while it is drawn."""

    def __init__(
        self, rows: SamplingRows, weight: Tensor | None, node_type: Tensor | None, seeds: Tensor, key: Tensor,
        blocks: Sequence[BlockSizes], shown: int, number: Tensor,
    ) -> None:  # fmt: skip
        self._rows, self._weight, self._types, self._key, self._number = rows, weight, node_type, key, number
        self._sizes, self._seeds = blocks[::-1], seeds
        # targets of each layer in the order drawn, and the input nodes
        self._targets = list(accumulate((size.added for size in self._sizes), initial=seeds.numel()))
        size, classes = self._targets[-1], rows.num_classes
        self._nodes = PaddedNodes(
            self._empty(size), self._empty(size, rows.degree.dtype), self._empty(size, torch.int32),
            None if node_type is None else self._empty(size, node_type.dtype), self._empty(size, torch.uint8),
        )  # fmt: skip
        self._read, self._shown_count = self._empty(classes, torch.int32), self._empty(classes)
        self._counts = self._empty((len(blocks) + 1) * COUNTS)
        self._shown = self._label_edges(size, shown)
        _begin[grid_for(max(seeds.numel(), classes, self._counts.numel()))](
            seeds, rows.class_rowptr, number, self._read, self._shown_count, self._counts, rows.degree, node_type,
            *self._nodes, seeds.numel(), classes, self._counts.numel(), TYPED=node_type is not None, BLOCK=BLOCK,
        )  # fmt: skip

    def _empty(self, size: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.empty(size, dtype=dtype, device=self._number.device)

    def _label_edges(self, num_nodes: int, size: int) -> PaddedLabelEdges:
        # one piece of memory: what training reads on another stream, the allocator watches piece by piece
        shown, y, key = self._empty(3 * size).view(3, size).unbind()
        return PaddedLabelEdges(shown, y, num_nodes, self._rows.num_classes, key)

    def draw_layer(self, step: int, fanout: int) -> PaddedRows:
        """Draws for all nodes so far."""
        rows, size, nodes = self._rows, self._sizes[step], self._nodes
        targets, sources = self._targets[step : step + 2]
        total = targets + rows.num_classes
        first, edge_count = self._empty(total), self._empty(total)
        pointer = self._empty(total + 1, torch.int32 if total * fanout < 2**31 else torch.int64)
        count = torch.empty_like(pointer[1:])
        last = len(self._sizes) * COUNTS
        count_edges[grid_for(total)](
            rows.rowptr, nodes.nodes, nodes.is_real, rows.class_rowptr, rows.label_of, self._read, first, edge_count,
            count, pointer, self._counts[last:], targets, total, self._seeds.numel(), step, fanout,
            ALL_LABELS=rows.reads_all_labels and step > 0, LIMITED=True, PADDED=True, BLOCK=BLOCK,
        )  # fmt: skip
        torch.cumsum(count, 0, dtype=pointer.dtype, out=pointer[1:])
        source = self._empty(size.edges + size.senders, rows.col.dtype)
        edge = None if self._weight is None else self._empty(source.numel())
        draw_rows(
            rows, nodes.nodes, nodes.is_real, first, edge_count, pointer, self._number, source, edge, self._key,
            (0, len(self._sizes) - 1 - step), fanout, targets,
        )  # fmt: skip
        number_new_nodes(
            rows, self._number, pointer, self._counts, nodes.nodes, self._shown.shown, self._shown.y,
            targets, targets, size.added, step, targets,
        )  # fmt: skip
        col = self._empty(size.edges, torch.int32)
        weight = None if self._weight is None else self._empty(size.edges, self._weight.dtype)
        senders, shown = self._label_edges(sources, size.senders), self._label_edges(targets, size.shown)
        _finish_layer[grid_for(max(size))](
            source, edge, self._weight, self._number, rows.label_of, self._shown.shown, self._shown.y, self._counts,
            rows.degree, self._types, *nodes, col, weight, senders.shown, senders.y, senders.key,
            shown.shown, shown.y, shown.key, step, targets, *size, rows.num_classes,
            COUNTS=COUNTS, WEIGHTED=weight is not None, TYPED=self._types is not None, BLOCK=BLOCK,
        )  # fmt: skip
        adjacency = PaddedAdjacency(pointer[: targets + 1], col, weight, sources, fanout)
        return PaddedRows(adjacency, edge_count[:targets], shown, senders)

    def finish(self, rows: list[PaddedRows]) -> PaddedSample:
        """The sample of these blocks, from the input on."""
        size, shown, nodes = self._targets[-1], self._shown, self._nodes
        _end[grid_for(max(size, shown.y.numel()))](
            nodes.nodes, self._number, self._counts, shown.shown, shown.y, shown.key,
            len(self._sizes), size, shown.y.numel(), self._rows.num_classes, COUNTS=COUNTS, BLOCK=BLOCK,
        )  # fmt: skip
        nodes = nodes._replace(is_real=nodes.is_real.view(torch.bool))
        return PaddedSample(nodes, rows, shown, self._shown_count, self._counts.view(-1, COUNTS))
