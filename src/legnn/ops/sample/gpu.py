"""Neighbor sampling on a GPU, in Triton: samples of any size, for which each layer synchronizes once.

A row has at most `fanout` edges, so that memory is allocated before their number is known.
"""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.sample.gpu_drawing import (
    BLOCK,
    NOT_READ,
    Drawn,
    copy_rows,
    count_edges,
    draw_rows,
    grid_for,
    number_new_nodes,
)
from legnn.ops.sample.types import DrawnLayer, DrawnNodes, SamplingOptions, SamplingView


@triton.jit(do_not_specialize=["count"])
def _number_seeds(nodes, number, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    tl.store(number + tl.load(nodes + i, mask=inside, other=0), i + 1, mask=inside)


@triton.jit(do_not_specialize=["count"])
def _look_up_numbers(source, number, col, count, BLOCK: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = e < count
    node = tl.load(source + e, mask=inside, other=0)
    tl.store(col + e, tl.load(number + node, mask=inside, other=1) - 1, mask=inside)


@triton.jit(do_not_specialize=["seeds", "count"])
def _look_up(nodes, label_of, degree, node_labels, node_degrees, number, seeds, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    node = tl.load(nodes + i, mask=inside, other=0)
    tl.store(node_labels + i, tl.load(label_of + node, mask=inside & (i >= seeds), other=-1), mask=inside)
    tl.store(node_degrees + i, tl.load(degree + node, mask=inside, other=0.0), mask=inside)
    tl.store(number + node, tl.zeros_like(i), mask=inside)


def draw_sample(
    view: SamplingView, seeds: Tensor, options: SamplingOptions, key: tuple[int, int], number: Tensor
) -> tuple[list[DrawnLayer], DrawnNodes]:
    """Draws one sample on a GPU; see the package."""

    def empty(size: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(size, dtype=dtype, device=number.device)

    # the layer, in the order drawn, that is the first to read a label
    read = torch.full((view.num_classes,), NOT_READ.value, dtype=torch.int32, device=number.device)
    nodes, layers = seeds.contiguous(), list[DrawnLayer]()
    shown, y = [nodes[:0]], [nodes[:0]]
    shown_by_targets: list[int] = []
    _number_seeds[grid_for(seeds.numel())](nodes, number, seeds.numel(), BLOCK=BLOCK)
    for k in reversed(range(len(options.fanouts))):
        fanout, targets = options.fanouts[k], nodes.numel()
        total = targets + view.num_classes
        most = view.col.numel() + view.class_col.numel() if fanout is None else total * fanout
        first, edge_count = empty(total, torch.int64), empty(total, torch.int64)
        pointer = empty(total + 1, torch.int32 if most < 2**31 else torch.int64)
        count = torch.empty_like(pointer[1:])
        count_edges[grid_for(total)](
            view.rowptr, nodes, view.class_rowptr, view.label_of, read, first, edge_count, count, pointer, targets,
            total, seeds.numel(), len(layers), fanout or 0, ALL_LABELS=view.reads_all_labels and bool(layers),
            LIMITED=fanout is not None, BLOCK=BLOCK,
        )  # fmt: skip
        torch.cumsum(count, 0, dtype=pointer.dtype, out=pointer[1:])
        if fanout is None:
            most = int(pointer[-1])
        source, edge = empty(most, view.col.dtype), empty(most, torch.int64) if options.edges else None
        rows = Drawn(view, nodes, first, edge_count, pointer, number, source, edge)
        if fanout is None and most:
            copy_rows(rows, count)
        elif fanout is not None and most:
            draw_rows(rows, (key[0], key[1] ^ k), fanout)
        new, num_edges, senders, new_shown, new_y = number_new_nodes(rows)
        drawn = num_edges + senders
        col = empty(drawn, torch.int32)
        _look_up_numbers[grid_for(drawn)](source, number, col, drawn, BLOCK=BLOCK)
        edge = None if edge is None else edge[:drawn]
        layers.append(DrawnLayer(pointer, col, edge, edge_count[:targets], num_edges, targets))
        shown_by_targets.append(sum(part.numel() for part in shown))
        nodes = torch.cat([nodes, new])
        shown.append(new_shown)
        y.append(new_y)
    node_labels, node_degrees = empty(nodes.numel(), torch.int32), empty(nodes.numel(), view.degree.dtype)
    _look_up[grid_for(nodes.numel())](
        nodes, view.label_of, view.degree, node_labels, node_degrees, number, seeds.numel(), nodes.numel(), BLOCK=BLOCK
    )
    return layers, DrawnNodes(nodes, node_labels, node_degrees, torch.cat(shown), torch.cat(y), shown_by_targets)
