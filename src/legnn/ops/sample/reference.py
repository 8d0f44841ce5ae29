"""Neighbor sampling in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.runtime.hashing import LABELS, random_words
from legnn.ops.sample.types import DrawnLayer, DrawnNodes, Fanout, SamplingView


def draw_edges(rowptr: Tensor, rows: Tensor, fanout: Fanout, key: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Draws `fanout` of the edges of each of `rows` `[R]` by Floyd's method: every subset is equally likely.

    For `j` from `d - f` to `d - 1`, takes a random one of the first `j + 1` edges, or edge `j` if that one was taken
    before. Returns row pointers `[R + 1]` and the edges drawn `[E]`.
    """
    rows = rows.long()
    begin = rowptr[rows].long()
    degree = rowptr[rows + 1].long() - begin
    count = degree if fanout is None else degree.clamp(max=fanout)
    drawn_rowptr = torch.zeros(rows.numel() + 1, dtype=rowptr.dtype, device=rows.device)
    torch.cumsum(count, 0, out=drawn_rowptr[1:])
    owner = torch.repeat_interleave(count)
    position = torch.arange(owner.numel(), device=rows.device) - drawn_rowptr[owner]
    if fanout is None:
        return drawn_rowptr, begin[owner] + position
    drawn = torch.empty(rows.numel(), fanout, dtype=torch.long, device=rows.device)
    for i in range(fanout):
        last = degree - fanout + i
        pick = (random_words(rows, i, key) * (last + 1).clamp(min=1)) >> 32
        again = (drawn[:, :i] == pick[:, None]).any(1)
        drawn[:, i] = torch.where(again, last, pick)
    # a row with `fanout` edges or fewer gives all of them
    chosen = torch.where((degree <= fanout)[owner], position, drawn[owner, position])
    return drawn_rowptr, begin[owner] + chosen


class Sampler:
    """Draws one sample on any device; see the package."""

    def __init__(self, rows: SamplingView, seeds: Tensor, number: Tensor) -> None:
        self._rows, self._num_seeds, self._number = rows, seeds.numel(), number
        self._is_read = torch.zeros(rows.num_classes, dtype=torch.bool, device=seeds.device)
        self._targets: list[int] = []
        self._nodes = seeds[:0]
        self._append(seeds)

    def draw_layer(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> DrawnLayer:
        """See the package."""
        rows, targets = self._rows, self._nodes
        rowptr, edge = draw_edges(rows.rowptr, targets, fanout, key)
        read = self._is_read.nonzero().flatten()
        label_rowptr, label_edge = draw_edges(rows.class_rowptr, read, fanout, (key[0] ^ LABELS, key[1]))
        count = rowptr.new_zeros(targets.numel() + rows.num_classes + 1)
        count[1 : targets.numel() + 1] = rowptr.diff()
        count[targets.numel() + 1 + read] = label_rowptr.diff().to(count.dtype)
        label_edge = label_edge + torch.searchsorted(rows.excluded_positions, label_edge, right=True)
        source = torch.cat([rows.col[edge].long(), rows.class_col[label_edge].long()])
        self._append(source[self._number[source] == 0].unique())
        self._targets.append(targets.numel())
        if rows.reads_all_labels:
            self._is_read.fill_(True)
        shown = self._label_of(targets)
        self._is_read[shown[shown >= 0].long()] = True
        return DrawnLayer(
            count.cumsum(0, dtype=count.dtype),
            self._number[source] - 1,
            torch.cat([edge, label_edge]) if edges else None,
            rows.rowptr[targets + 1] - rows.rowptr[targets],
            edge.numel(),
            targets.numel(),
        )

    def finish(self) -> DrawnNodes:
        """See the package."""
        self._number[self._nodes] = 0
        label_of = self._label_of(self._nodes)
        shown = (label_of >= 0).nonzero().flatten()
        shown_by_targets = [int((shown < targets).sum()) for targets in self._targets]
        degree = self._rows.degree[self._nodes]
        return DrawnNodes(self._nodes, label_of, degree, shown, label_of[shown].long(), shown_by_targets)

    def _append(self, nodes: Tensor) -> None:
        self._nodes = torch.cat([self._nodes, nodes])
        numbers = torch.arange(1, self._nodes.numel() + 1, dtype=self._number.dtype, device=nodes.device)
        self._number[self._nodes] = numbers

    def _label_of(self, nodes: Tensor) -> Tensor:
        label_of = self._rows.label_of[nodes]
        label_of[: self._num_seeds] = -1
        return label_of
