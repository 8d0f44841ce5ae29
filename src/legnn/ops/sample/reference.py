"""Sampling in plain PyTorch, as a reader would check it: a graph without the seeds' labels, then block after block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelEdges, LabelGraph
from legnn.ops.csr.adjacency import Adjacency, DrawnRows
from legnn.ops.runtime.hashing import LABELS, random_words
from legnn.ops.sample.fanout import Fanout


class Drawn(NamedTuple):
    """Edges drawn for some rows of an adjacency."""

    rowptr: Tensor
    """`[R + 1]` where the edges of each row begin."""
    edge: Tensor
    """`[E]` which edges of the adjacency."""


def sample(
    graph: LabelGraph, seeds: Tensor, fanouts: Sequence[Fanout], key: tuple[int, int], *, edges: bool = False
) -> SampledLabelGraph:
    """`legnn.graph.sample_label_graph`."""
    if seeds.numel() and bool((graph.to_nodes.label_of[seeds] >= 0).any()):
        graph = graph.hide(seeds)
    blocks: list[LabelBlock] = []
    nodes = seeds
    # the labels a later layer reads; none reads those that the last layer would compute
    read = torch.zeros(graph.num_classes, dtype=torch.bool, device=seeds.device)
    for k in reversed(range(len(fanouts))):
        block = _block(graph, nodes, fanouts[k], read, (key[0], key[1] ^ k), edges)
        read = _reads(block, read)
        blocks.insert(0, block)
        nodes = block.nodes
    return SampledLabelGraph(blocks, LabelEdges.among(blocks[0].labels_of, graph.num_classes))


def _block(
    graph: LabelGraph, targets: Tensor, fanout: Fanout, read: Tensor, key: tuple[int, int], edges: bool
) -> LabelBlock:
    adjacency, classes = graph.adjacency, graph.to_labels.classes
    drawn = draw(adjacency, targets, fanout, key)
    sources = adjacency.col[drawn.edge]
    every_class = torch.arange(graph.num_classes, device=targets.device)
    to_labels = draw(classes, every_class[read], fanout, (key[0] ^ LABELS, key[1]))
    senders = classes.col[to_labels.edge]
    nodes, place = compact(targets, torch.cat([sources, senders]), graph.num_nodes)
    col, sender_place = place.split([sources.numel(), senders.numel()])
    labels_of = graph.to_nodes.label_of[nodes]
    shown = LabelEdges.among(labels_of[: targets.numel()], graph.num_classes)
    return LabelBlock(
        adjacency=DrawnRows(
            drawn.rowptr,
            col,
            None if adjacency.weight is None else adjacency.weight[drawn.edge],
            nodes.numel(),
            fanout,
            drawn.edge if edges else None,
        ),
        shown=shown.shown,
        y=shown.y,
        num_classes=graph.num_classes,
        label_adjacency=graph.label_adjacency,
        nodes=nodes,
        senders=LabelEdges(
            sender_place.long(), graph.to_nodes.label_of[senders].long(), nodes.numel(), graph.num_classes
        ),
        degrees=graph.degree[nodes],
        labels_of=labels_of,
        edges_of=None if fanout is None else adjacency.rowptr[targets + 1] - adjacency.rowptr[targets],
        shown_by=graph.to_labels.count,
    )


def _reads(block: LabelBlock, read: Tensor) -> Tensor:
    """`[C]` bool: the labels that this layer or a later one reads."""
    if block.label_adjacency is not None:
        return torch.ones_like(read)
    return read.index_fill(0, block.y, True)


def draw(adjacency: Adjacency, rows: Tensor, fanout: Fanout, key: tuple[int, int]) -> Drawn:
    """Draw `fanout` of the edges of each of `rows` `[R]` by Floyd's method: any subset is as likely as any other.

    For `j` from `d - f` to `d - 1`, take a random one of the first `j + 1` edges, or the edge `j` itself if that one
    was taken before.
    """
    rows = rows.long()
    begin = adjacency.rowptr[rows].long()
    degree = adjacency.rowptr[rows + 1].long() - begin
    count = degree if fanout is None else degree.clamp(max=fanout)
    rowptr = torch.zeros(rows.numel() + 1, dtype=adjacency.rowptr.dtype, device=rows.device)
    torch.cumsum(count, 0, out=rowptr[1:])
    owner = torch.repeat_interleave(count)
    place = torch.arange(owner.numel(), device=rows.device) - rowptr[owner]
    if fanout is None:
        return Drawn(rowptr, begin[owner] + place)
    taken = torch.empty(rows.numel(), fanout, dtype=torch.long, device=rows.device)
    for i in range(fanout):
        last = degree - fanout + i
        pick = (random_words(rows, i, key) * (last + 1).clamp(min=1)) >> 32
        again = (taken[:, :i] == pick[:, None]).any(1)
        taken[:, i] = torch.where(again, last, pick)
    # a row with no more edges than may be drawn gives all of them
    chosen = torch.where((degree <= fanout)[owner], place, taken[owner, place])
    return Drawn(rowptr, begin[owner] + chosen)


def compact(first: Tensor, others: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Number the nodes that come up: `first` `[M]` as they are, then those of `others` `[E]` that are not among them.

    Gives the nodes `[N]` and the number of each of `others`.
    """
    place = torch.full((num_nodes,), -1, dtype=torch.int32, device=first.device)
    place[first] = torch.arange(first.numel(), dtype=torch.int32, device=first.device)
    new = others[place[others] < 0].unique().to(first.dtype)
    place[new] = torch.arange(first.numel(), first.numel() + new.numel(), dtype=torch.int32, device=first.device)
    return torch.cat([first, new]), place[others]
