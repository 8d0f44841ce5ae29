"""Blocks of a label graph: from a sample of the neighbors for mini-batches, from all of them for layer-wise inference.

`ops.sample` draws the edges; here they become blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.ops.csr.adjacency import Adjacency, SampledAdjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.sample import Fanout, Sampler, sampler_for
from legnn.ops.sample.reference import draw_edges
from legnn.ops.sample.scratch import borrow_zeros
from legnn.ops.sample.types import SamplingRows

__all__ = ["Fanout", "all_neighbors", "all_senders", "neighbors_of", "rows_of", "sample_label_graph", "with_labels_of"]


def sample_label_graph(
    graph: LabelGraph,
    seeds: Tensor,
    fanouts: Sequence[Fanout],
    key: tuple[int, int],
    *,
    edges: bool = False,
    sampler: type[Sampler] | None = None,
) -> SampledLabelGraph:
    """Returns the blocks from which the layers compute `seeds`.

    In layer `k` every node that is computed draws `fanouts[k]` of its incoming edges, and every label that a later
    layer reads draws as many of the nodes that show it. No seed shows its label, neither to itself nor to any other
    node: what the label receives from a seed would come back to it.

    Args:
        graph: the whole graph.
        seeds: `[B]` nodes, each once.
        fanouts: one for each layer, from the input on, as the paper gives them: `(15, 10, 5)`.
        key: two 32-bit words, which determine what is drawn.
        edges: whether the adjacency of each block has `edge`, the position of its edges in the whole graph.
        sampler: draws the edges; the fastest for the device if not given.
    """
    seeds = seeds.long()
    rows = _rows_without(graph, seeds)
    needs_edges = edges or graph.adjacency.weight is not None
    with borrow_zeros(graph.adjacency) as scratch:
        draw = (sampler or sampler_for(seeds.device))(rows, seeds, scratch)
        layers = [
            draw.draw_layer(fanouts[k], (key[0], key[1] ^ k), edges=needs_edges) for k in reversed(range(len(fanouts)))
        ]
        sampled = draw.finish()
    # a block reads the nodes that the block before it computes, the first one all nodes
    size_in = sampled.nodes.numel()
    sizes = [size_in, *(layer.num_targets for layer in layers[:0:-1])][: len(layers)]
    shown_count = rows.class_rowptr.diff().long()
    node_type = None if graph.node_type is None else graph.node_type[sampled.nodes]
    blocks = []
    for layer, size, shown, fanout in zip(layers[::-1], sizes, sampled.shown_by_targets[::-1], fanouts, strict=True):
        rowptr, col = layer.rowptr[: layer.num_targets + 1], layer.col[: layer.num_edges]
        edge = None if layer.edge is None else layer.edge[: layer.num_edges]
        weight = None if graph.adjacency.weight is None or edge is None else graph.adjacency.weight[edge]
        sender = layer.col[layer.num_edges :].long()
        block = LabelBlock(
            adjacency=SampledAdjacency(rowptr, col, weight, size, fanout, edge if edges else None),
            shown=sampled.shown[:shown],
            y=sampled.y[:shown],
            num_classes=graph.num_classes,
            label_adjacency=graph.label_adjacency,
            node_type=None if node_type is None else node_type[:size],
            nodes=sampled.nodes[:size],
            senders=LabelEdges(sender, sampled.label_of[sender].long(), size, graph.num_classes),
            source_degrees=sampled.degree[:size],
            source_labels=sampled.label_of[:size],
            edge_count=None if fanout is None else layer.edge_count,
            shown_count=shown_count,
        )
        blocks.append(block)
    return SampledLabelGraph(sampled.nodes, blocks, LabelEdges(sampled.shown, sampled.y, size_in, graph.num_classes))


def all_neighbors(graph: LabelGraph, targets: Tensor, sampler: type[Sampler] | None = None) -> LabelBlock:
    """Returns the block from which a layer computes the nodes `targets` `[R]`, each once; it computes no labels."""
    adjacency = graph.adjacency
    with borrow_zeros(adjacency) as scratch:
        draw = (sampler or sampler_for(targets.device))(_rows_without(graph, targets[:0]), targets.long(), scratch)
        layer = draw.draw_layer(None, (0, 0), edges=adjacency.weight is not None)
        nodes = draw.finish().nodes
    # the first layer to be drawn draws for no label: every edge is one of the targets
    rowptr = layer.rowptr[: targets.numel() + 1]
    weight = None if adjacency.weight is None or layer.edge is None else adjacency.weight[layer.edge]
    senders = LabelEdges(nodes[:0], nodes[:0], nodes.numel(), graph.num_classes)
    return _full_block(graph, Adjacency(rowptr, layer.col, weight, nodes.numel()), nodes, senders)


def with_labels_of(graph: LabelGraph, block: LabelBlock) -> LabelBlock:
    """Returns `block`, which `all_neighbors` made of the same edges, with the labels that `graph` shows."""
    return _full_block(graph, block.adjacency, block.nodes, block.senders)


def all_senders(graph: LabelGraph, classes: Tensor) -> LabelBlock:
    """Returns the block from which a layer computes the labels `classes`; it computes no nodes."""
    rows = graph.to_labels.classes
    nodes = neighbors_of(rows, classes)
    senders = LabelEdges.from_label_of(graph.to_nodes.label_of[nodes], graph.num_classes)
    adjacency = Adjacency(torch.zeros_like(rows.rowptr[:1]), rows.col[:0], None, nodes.numel())
    return _full_block(graph, adjacency, nodes, senders)


def neighbors_of(adjacency: Adjacency, rows: Tensor) -> Tensor:
    """Returns the columns of all edges of `rows`, row after row."""
    return adjacency.col[draw_edges(adjacency.rowptr, rows, None, (0, 0))[1]].long()


def rows_of(graph: LabelGraph) -> SamplingRows:
    """The rows of `graph`, for seeds that show no label."""
    adjacency, labels = graph.adjacency, graph.to_labels
    classes = labels.classes
    return SamplingRows(
        rowptr=adjacency.rowptr,
        col=adjacency.col,
        degree=graph.degree,
        label_of=labels.label_of,
        class_rowptr=classes.rowptr,
        class_col=classes.col,
        gaps=classes.rowptr[:0],
        reads_all_labels=graph.label_adjacency is not None,
    )


def _rows_without(graph: LabelGraph, seeds: Tensor) -> SamplingRows:
    """The rows of `graph` when `seeds` show no label."""
    rows = rows_of(graph)
    if graph.shown.numel() == 0:
        return rows
    hidden = graph.to_labels.position_in_classes[seeds]
    if hidden.device.type == "cpu":
        # selecting them on a GPU would synchronize; positions past the end do no harm
        hidden = hidden[hidden < graph.shown.numel()]
    hidden = hidden.sort().values
    gaps = hidden - torch.arange(hidden.numel(), dtype=hidden.dtype, device=hidden.device)
    rowptr = rows.class_rowptr - torch.searchsorted(hidden, rows.class_rowptr, out_int32=True)
    return replace(rows, class_rowptr=rowptr, gaps=gaps)


def _full_block(graph: LabelGraph, adjacency: Adjacency, nodes: Tensor, senders: LabelEdges) -> LabelBlock:
    """A block with all edges, in which every node shows its label that shows it in the graph."""
    labels = graph.to_nodes.label_of[nodes]
    to_nodes = LabelEdges.from_label_of(labels[: adjacency.num_rows], graph.num_classes)
    return LabelBlock(
        adjacency=adjacency,
        shown=to_nodes.shown,
        y=to_nodes.y,
        num_classes=graph.num_classes,
        label_adjacency=graph.label_adjacency,
        node_type=None if graph.node_type is None else graph.node_type[nodes],
        nodes=nodes,
        senders=senders,
        source_degrees=graph.degree[nodes],
        source_labels=labels,
        edge_count=None,
        shown_count=graph.to_labels.count,
    )
