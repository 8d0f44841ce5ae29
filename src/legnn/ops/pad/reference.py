"""Padding of samples in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.csr.padded import PaddedAdjacency, PaddedLabelEdges
from legnn.ops.pad.types import NodeGroup, NodeValues, PaddedNodes, PaddedRows, RowSizes, SampledRows


def pad_nodes(values: NodeValues, groups: list[NodeGroup]) -> PaddedNodes:
    """See `PaddingKernels`."""
    device = values.nodes.device
    new = torch.empty(values.nodes.numel(), dtype=torch.long, device=device)
    before = torch.empty(groups[-1].padded_end, dtype=torch.long, device=device)
    is_real = torch.zeros(before.numel(), dtype=torch.bool, device=device)
    begin = padded_begin = 0
    for end, padded_end in groups:
        there = slice(padded_begin, padded_begin + end - begin)
        torch.arange(there.start, there.stop, out=new[begin:end])
        torch.arange(begin, end, out=before[there])
        before[there.stop : padded_end] = end
        is_real[there] = True
        begin, padded_begin = end, padded_end
    old = before * is_real
    return PaddedNodes(values.map(lambda one: one.index_select(0, old)), is_real, before, new)


def pad_rows(rows: SampledRows, nodes: PaddedNodes, sizes: RowSizes) -> PaddedRows:
    """See `PaddingKernels`."""
    adjacency, before = rows.adjacency, nodes.before
    col = pad_values(nodes.new[adjacency.col].to(adjacency.col.dtype), sizes.edges, sizes.sources)
    weight = None if adjacency.weight is None else pad_values(adjacency.weight, sizes.edges, 0)
    # padding nodes have no edges: their rows begin where the next one does
    rowptr = adjacency.rowptr.index_select(0, before[: sizes.targets + 1])
    old = before[: sizes.targets] * nodes.is_real[: sizes.targets]
    return PaddedRows(
        PaddedAdjacency(rowptr, col, weight, sizes.sources, adjacency.fanout),
        None if rows.edge_count is None else rows.edge_count.index_select(0, old),
        pad_label_edges(rows.shown, nodes, sizes.targets, sizes.shown),
        pad_label_edges(rows.senders, nodes, sizes.sources, sizes.senders),
    )


def pad_label_edges(edges: LabelEdges, nodes: PaddedNodes, num_nodes: int, size: int) -> PaddedLabelEdges:
    """See `PaddingKernels`."""
    shown = pad_values(nodes.new[edges.shown], size, num_nodes - 1)
    y, key = pad_values(edges.y, size, 0), pad_values(edges.y, size, edges.num_classes)
    return PaddedLabelEdges(shown, y, num_nodes, edges.num_classes, key)


def pad_values(values: Tensor, size: int, by: float) -> Tensor:
    """`values` `[n]` and then the number `by`, `[size]`."""
    padded = torch.full((size,), by, dtype=values.dtype, device=values.device)
    padded[: values.numel()] = values
    return padded
