"""Neighbor sampling in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.runtime.hashing import LABELS, random_words
from legnn.ops.sample.types import DrawnLayer, DrawnNodes, Fanout, SamplingOptions, SamplingView


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


def draw_sample(
    view: SamplingView, seeds: Tensor, options: SamplingOptions, key: tuple[int, int], number: Tensor
) -> tuple[list[DrawnLayer], DrawnNodes]:
    """Draws one sample on any device; see the package."""
    is_read = torch.zeros(view.num_classes, dtype=torch.bool, device=seeds.device)
    layers: list[DrawnLayer] = []
    nodes = seeds
    number[nodes] = torch.arange(1, nodes.numel() + 1, dtype=number.dtype, device=nodes.device)
    for k in reversed(range(len(options.fanouts))):
        words = key[0], key[1] ^ k
        fanout = options.fanouts[k]
        rowptr, edge = draw_edges(view.rowptr, nodes, fanout, words)
        read = is_read.nonzero().flatten()
        label_rowptr, label_edge = draw_edges(view.class_rowptr, read, fanout, (words[0] ^ LABELS, words[1]))
        count = rowptr.new_zeros(nodes.numel() + view.num_classes + 1)
        count[1 : nodes.numel() + 1] = rowptr.diff()
        count[nodes.numel() + 1 + read] = label_rowptr.diff().to(count.dtype)
        label_edge = label_edge + torch.searchsorted(view.excluded_positions, label_edge, right=True)
        source = torch.cat([view.col[edge].long(), view.class_col[label_edge].long()])
        known, nodes = nodes, torch.cat([nodes, source[number[source] == 0].unique()])
        number[nodes] = torch.arange(1, nodes.numel() + 1, dtype=number.dtype, device=nodes.device)
        layers.append(
            DrawnLayer(
                count.cumsum(0, dtype=count.dtype),
                number[source] - 1,
                torch.cat([edge, label_edge]) if options.edges else None,
                view.rowptr[known + 1] - view.rowptr[known],
                edge.numel(),
                known.numel(),
            )
        )
        if view.reads_all_labels:
            is_read.fill_(True)
        shown = view.label_of[known[seeds.numel() :]]
        is_read[shown[shown >= 0].long()] = True
    number[nodes] = 0
    label_of = view.label_of[nodes]
    label_of[: seeds.numel()] = -1
    shown = (label_of >= 0).nonzero().flatten()
    shown_by_targets = [int((shown < layer.num_targets).sum()) for layer in layers]
    return layers, DrawnNodes(nodes, label_of, view.degree[nodes], shown, label_of[shown].long(), shown_by_targets)
