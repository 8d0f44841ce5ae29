"""Sampling written out block by block, apart from the library's own: a graph without the seeds' labels, then blocks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from legnn.graph import Adjacency, LabelBlock, LabelEdges, LabelGraph, SampledLabelGraph
from legnn.ops.runtime.hashing import LABELS
from legnn.ops.sample import Fanout
from legnn.ops.sample.reference import draw_edges


def sample_block_by_block(
    graph: LabelGraph, seeds: Tensor, fanouts: Sequence[Fanout], key: tuple[int, int], *, edges: bool = False
) -> SampledLabelGraph:
    """`sample_label_graph`, without kernels."""
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
    return SampledLabelGraph(
        blocks[0].nodes, blocks, LabelEdges.from_label_of(blocks[0].source_labels, graph.num_classes)
    )


def _block(
    graph: LabelGraph, targets: Tensor, fanout: Fanout, read: Tensor, key: tuple[int, int], edges: bool
) -> LabelBlock:
    adjacency, classes = graph.adjacency, graph.to_labels.classes
    rowptr, edge = draw_edges(adjacency.rowptr, targets, fanout, key)
    sources = adjacency.col[edge]
    every_class = torch.arange(graph.num_classes, device=targets.device)
    _, label_edge = draw_edges(classes.rowptr, every_class[read], fanout, (key[0] ^ LABELS, key[1]))
    senders = classes.col[label_edge]
    nodes, place = compact(targets, torch.cat([sources, senders]), graph.num_nodes)
    col, sender_place = place.split([sources.numel(), senders.numel()])
    source_labels = graph.to_nodes.label_of[nodes]
    shown = LabelEdges.from_label_of(source_labels[: targets.numel()], graph.num_classes)
    return LabelBlock(
        adjacency=Adjacency.sampled(
            rowptr,
            col,
            None if adjacency.weight is None else adjacency.weight[edge],
            nodes.numel(),
            fanout,
            edge if edges else None,
        ),
        shown=shown.shown,
        y=shown.y,
        num_classes=graph.num_classes,
        label_adjacency=graph.label_adjacency,
        nodes=nodes,
        senders=LabelEdges(
            sender_place.long(), graph.to_nodes.label_of[senders].long(), nodes.numel(), graph.num_classes
        ),
        source_degrees=graph.degree[nodes],
        source_labels=source_labels,
        edge_count=None if fanout is None else adjacency.rowptr[targets + 1] - adjacency.rowptr[targets],
        shown_count=graph.to_labels.count,
    )


def _reads(block: LabelBlock, read: Tensor) -> Tensor:
    """`[C]` bool: the labels that this layer or a later one reads."""
    if block.label_adjacency is not None:
        return torch.ones_like(read)
    return read.index_fill(0, block.y, True)


def compact(first: Tensor, others: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Number `first` `[M]`, then those of `others` `[E]` that are new; also returns the number of each other."""
    place = torch.full((num_nodes,), -1, dtype=torch.int32, device=first.device)
    place[first] = torch.arange(first.numel(), dtype=torch.int32, device=first.device)
    new = others[place[others] < 0].unique().to(first.dtype)
    place[new] = torch.arange(first.numel(), first.numel() + new.numel(), dtype=torch.int32, device=first.device)
    return torch.cat([first, new]), place[others]
