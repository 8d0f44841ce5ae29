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
    COUNTS,
    NOT_READ,
    copy_rows,
    count_edges,
    draw_rows,
    grid_for,
    number_new_nodes,
)
from legnn.ops.sample.types import DrawnLayer, DrawnNodes, Fanout, SamplingView


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


class Sampler:
    """Draws one sample on a GPU; see the package."""

    def __init__(self, rows: SamplingView, seeds: Tensor, number: Tensor) -> None:
        self._rows, self._num_seeds, self._number = rows, seeds.numel(), number
        # the layer, in the order drawn, that is the first to read a label
        self._read = torch.full((rows.num_classes,), NOT_READ.value, dtype=torch.int32, device=number.device)
        # no label is shown before the first layer
        self._zeros = torch.zeros(2 * COUNTS, dtype=torch.int64, device=number.device)
        self._nodes = seeds.contiguous()
        self._shown: list[Tensor] = []
        self._y: list[Tensor] = []
        self._shown_by_targets: list[int] = []
        _number_seeds[grid_for(seeds.numel())](self._nodes, number, seeds.numel(), BLOCK=BLOCK)

    def _empty(self, size: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(size, dtype=dtype, device=self._number.device)

    def draw_layer(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> DrawnLayer:
        """See the package."""
        rows, targets = self._rows, self._nodes.numel()
        total = targets + rows.num_classes
        most = rows.col.numel() + rows.class_col.numel() if fanout is None else total * fanout
        first, edge_count = self._empty(total, torch.int64), self._empty(total, torch.int64)
        pointer = self._empty(total + 1, torch.int32 if most < 2**31 else torch.int64)
        count = torch.empty_like(pointer[1:])
        count_edges[grid_for(total)](
            rows.rowptr, self._nodes, rows.class_rowptr, rows.label_of, self._read, first, edge_count, count,
            pointer, targets, total, self._num_seeds, len(self._shown_by_targets), fanout or 0,
            ALL_LABELS=rows.reads_all_labels and bool(self._shown_by_targets), LIMITED=fanout is not None,
            BLOCK=BLOCK,
        )  # fmt: skip
        torch.cumsum(count, 0, dtype=pointer.dtype, out=pointer[1:])
        if fanout is None:
            most = int(pointer[-1])
        source = self._empty(most, rows.col.dtype)
        edge = self._empty(most, torch.int64) if edges else None
        if fanout is None and most:
            copy_rows(rows, count, first, pointer, self._number, source, edge, targets)
        elif fanout is not None and most:
            draw_rows(
                rows, self._nodes, first, edge_count, pointer, self._number, source, edge, key, fanout, targets,
            )  # fmt: skip
        drawn, num_edges = self._number_new_nodes(pointer, most, targets)
        col = self._empty(drawn, torch.int32)
        _look_up_numbers[grid_for(drawn)](source, self._number, col, drawn, BLOCK=BLOCK)
        return DrawnLayer(
            pointer, col, None if edge is None else edge[:drawn], edge_count[:targets], num_edges, targets
        )

    def _number_new_nodes(self, pointer: Tensor, most: int, targets: int) -> tuple[int, int]:
        """Numbers the nodes marked as new; returns how many edges were drawn, and how many of them for nodes."""
        most = min(most, self._number.numel())
        nodes, shown, y = (self._empty(most, torch.int64) for _ in range(3))
        counts = self._zeros.clone()
        number_new_nodes(
            self._rows, self._number, pointer, counts, nodes, shown, y, targets, 0, most, 0, targets
        )  # fmt: skip
        # the one synchronization of a layer
        new, num_edges, senders, _, _, _, _, showing = counts.tolist()
        self._nodes = torch.cat([self._nodes, nodes[:new]])
        self._shown_by_targets.append(sum(part.numel() for part in self._shown))
        self._shown.append(shown[:showing])
        self._y.append(y[:showing])
        return num_edges + senders, num_edges

    def finish(self) -> DrawnNodes:
        """See the package."""
        count, degree = self._nodes.numel(), self._rows.degree
        node_labels, node_degrees = self._empty(count, torch.int32), self._empty(count, degree.dtype)
        _look_up[grid_for(count)](
            self._nodes, self._rows.label_of, degree, node_labels, node_degrees, self._number, self._num_seeds, count,
            BLOCK=BLOCK,
        )  # fmt: skip
        # no layer may have been drawn
        shown, y = (torch.cat([self._nodes[:0], *parts]) for parts in (self._shown, self._y))
        return DrawnNodes(self._nodes, node_labels, node_degrees, shown, y, self._shown_by_targets)
