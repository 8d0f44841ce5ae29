"""Padding of samples on a GPU, in Triton: a kernel for the nodes of each layer, and one for the edges of each block.

Threads pad batches of one epoch at the same time: no kernel is compiled anew for a number that differs between them, as
in `ops.sample.triton_kernels`.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.csr.padded import PaddedAdjacency, PaddedLabelEdges
from legnn.ops.pad.reference import pad_values
from legnn.ops.pad.types import NodeGroup, NodeValues, PaddedNodes, PaddedRows, RowSizes, SampledRows
from legnn.ops.runtime.launch import launched

BLOCK = 1024
"""Entries of a program."""


@launched
@triton.jit(do_not_specialize=["begin", "end", "padded_begin", "padded_end"])
def _pad_nodes(
    nodes, degree, label_of, node_type, padded_nodes, padded_degree, padded_label, padded_type, is_real, before, new,
    begin, end, padded_begin, padded_end,
    TYPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place = padded_begin + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < padded_end
    node = begin + place - padded_begin
    real = inside & (node < end)
    # padding is a copy of the first node
    old = tl.where(real, node, 0)
    tl.store(padded_nodes + place, tl.load(nodes + old, mask=inside, other=0), mask=inside)
    tl.store(padded_degree + place, tl.load(degree + old, mask=inside, other=0.0), mask=inside)
    tl.store(padded_label + place, tl.load(label_of + old, mask=inside, other=-1), mask=inside)
    if TYPED:
        tl.store(padded_type + place, tl.load(node_type + old, mask=inside, other=0), mask=inside)
    tl.store(is_real + place, real.to(tl.uint8), mask=inside)
    tl.store(before + place, tl.minimum(node, end), mask=inside)
    tl.store(new + node, place, mask=real)


@triton.jit
def _write_label_edges(
    start, shown, y, new, padded_shown, padded_y, key, count, size, last, CLASSES: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the entries from `start` on of the label edges, and padding edges from the node `last` after them."""
    if start < size:
        i = start + tl.arange(0, BLOCK)
        inside = i < size
        there = i < count
        node = tl.load(new + tl.load(shown + i, mask=there, other=0), mask=there, other=0)
        label = tl.load(y + i, mask=there, other=0)
        tl.store(padded_shown + i, tl.where(there, node, last).to(tl.int64), mask=inside)
        tl.store(padded_y + i, label, mask=inside)
        tl.store(key + i, tl.where(there, label, CLASSES), mask=inside)


@launched
@triton.jit(do_not_specialize=["count", "size", "last"])
def _pad_label_edges(
    shown, y, new, padded_shown, padded_y, key, count, size, last, CLASSES: tl.constexpr, BLOCK: tl.constexpr
):
    start = tl.program_id(0) * BLOCK
    _write_label_edges(start, shown, y, new, padded_shown, padded_y, key, count, size, last, CLASSES, BLOCK)


@launched
@triton.jit(
    do_not_specialize=[
        "edges", "num_shown", "num_senders", "targets", "sources", "padded_edges", "size_shown", "size_senders",
    ]
)  # fmt: skip
def _pad_rows(
    rowptr, col, edge_count, shown, shown_y, sender, sender_y, before, is_real, new,
    padded_rowptr, padded_col, padded_count,
    padded_shown, padded_shown_y, shown_key, padded_sender, padded_sender_y, sender_key,
    edges, num_shown, num_senders, targets, sources, padded_edges, size_shown, size_senders,
    COUNTED: tl.constexpr, CLASSES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    if start <= targets:
        # padding nodes have no edges: their rows begin where the next one does
        row = tl.load(before + i, mask=i <= targets, other=0)
        tl.store(padded_rowptr + i, tl.load(rowptr + row, mask=i <= targets, other=0), mask=i <= targets)
        if COUNTED:
            real = tl.load(is_real + i, mask=i < targets, other=0) != 0
            old = tl.where(real, row, 0)
            tl.store(padded_count + i, tl.load(edge_count + old, mask=i < targets, other=0), mask=i < targets)
    if start < padded_edges:
        there = i < edges
        node = tl.load(new + tl.load(col + i, mask=there, other=0), mask=there, other=0)
        tl.store(padded_col + i, tl.where(there, node, sources), mask=i < padded_edges)
    _write_label_edges(
        start, shown, shown_y, new, padded_shown, padded_shown_y, shown_key, num_shown, size_shown, targets - 1,
        CLASSES, BLOCK,
    )  # fmt: skip
    _write_label_edges(
        start, sender, sender_y, new, padded_sender, padded_sender_y, sender_key, num_senders, size_senders,
        sources - 1, CLASSES, BLOCK,
    )  # fmt: skip


def _grid(size: int) -> tuple[int]:
    # `triton.cdiv` takes the host 3 µs
    return (-(-size // BLOCK),)


def _empty(size: int, like: Tensor) -> Tensor:
    return torch.empty(size, dtype=like.dtype, device=like.device)


def _empty_label_edges(edges: LabelEdges, num_nodes: int, size: int) -> PaddedLabelEdges:
    # one piece of memory: what training reads on another stream, the allocator watches piece by piece
    shown, y, key = torch.empty(3, size, dtype=edges.y.dtype, device=edges.y.device).unbind()
    return PaddedLabelEdges(shown, y, num_nodes, edges.num_classes, key)


def pad_nodes(values: NodeValues, groups: list[NodeGroup]) -> PaddedNodes:
    """See `PaddingKernels`."""
    size, device = groups[-1].padded_end, values.nodes.device
    padded = values.map(lambda one: _empty(size, one))
    is_real = torch.empty(size, dtype=torch.uint8, device=device)
    before = torch.empty(size, dtype=torch.int32, device=device)
    new = torch.empty(values.nodes.numel(), dtype=torch.int32, device=device)
    begin = padded_begin = 0
    for end, padded_end in groups:
        if padded_end > padded_begin:
            _pad_nodes[_grid(padded_end - padded_begin)](
                *values, *padded, is_real, before, new, begin, end, padded_begin, padded_end,
                TYPED=values.node_type is not None, BLOCK=BLOCK,
            )  # fmt: skip
        begin, padded_begin = end, padded_end
    return PaddedNodes(padded, is_real.view(torch.bool), before, new)


def pad_rows(rows: SampledRows, nodes: PaddedNodes, sizes: RowSizes) -> PaddedRows:
    """See `PaddingKernels`."""
    adjacency, count = rows.adjacency, rows.edge_count
    rowptr, col = _empty(sizes.targets + 1, adjacency.rowptr), _empty(sizes.edges, adjacency.col)
    edge_count = None if count is None else _empty(sizes.targets, count)
    shown = _empty_label_edges(rows.shown, sizes.targets, sizes.shown)
    senders = _empty_label_edges(rows.senders, sizes.sources, sizes.senders)
    largest = max(sizes.targets + 1, sizes.edges, sizes.shown, sizes.senders)
    _pad_rows[_grid(largest)](
        adjacency.rowptr, adjacency.col, count, rows.shown.shown, rows.shown.y, rows.senders.shown, rows.senders.y,
        nodes.before, nodes.is_real, nodes.new, rowptr, col, edge_count,
        shown.shown, shown.y, shown.key, senders.shown, senders.y, senders.key,
        adjacency.num_edges, rows.shown.y.numel(), rows.senders.y.numel(), *sizes,
        COUNTED=count is not None, CLASSES=shown.num_classes, BLOCK=BLOCK,
    )  # fmt: skip
    weight = None if adjacency.weight is None else pad_values(adjacency.weight, sizes.edges, 0)
    padded = PaddedAdjacency(rowptr, col, weight, sizes.sources, adjacency.fanout)
    return PaddedRows(padded, edge_count, shown, senders)


def pad_label_edges(edges: LabelEdges, nodes: PaddedNodes, num_nodes: int, size: int) -> PaddedLabelEdges:
    """See `PaddingKernels`."""
    padded = _empty_label_edges(edges, num_nodes, size)
    if size:
        _pad_label_edges[_grid(size)](
            edges.shown, edges.y, nodes.new, padded.shown, padded.y, padded.key, edges.y.numel(), size, num_nodes - 1,
            CLASSES=edges.num_classes, BLOCK=BLOCK,
        )  # fmt: skip
    return padded
