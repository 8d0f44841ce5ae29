"""Blocks with all neighbors, for layer-wise inference. Whoever shows a label goes on showing it."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.graph.blocks import LabelBlock
from legnn.graph.label_graph import LabelEdges, LabelGraph
from legnn.graph.sampling.walk import Kernels, Rows
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.sample.reference import compact, draw
from legnn.ops.sample.scratch import places


def all_neighbors(kernels: Kernels | None, graph: LabelGraph, targets: Tensor) -> LabelBlock:
    """What a layer reads to compute the nodes `targets` `[R]` (each once) from all their neighbors; no labels."""
    adjacency = graph.adjacency
    edge: Tensor | None
    if kernels is None:
        drawn = draw(adjacency, targets, None, (0, 0))
        nodes, col = compact(targets, adjacency.col[drawn.edge], graph.num_nodes)
        rowptr, edge = drawn
    else:
        weighted = adjacency.weight is not None
        with places(adjacency) as place:
            walk = kernels.start(Rows.of(graph, targets[:0]), targets.long(), place)
            step = walk.step(None, (0, 0), edges=weighted)
            nodes = walk.end().nodes
        # no label is read before the first step, so all that was drawn is the nodes'
        rowptr, col, edge = step.rowptr[: targets.numel() + 1], step.col, step.edge
    weight = None if adjacency.weight is None or edge is None else adjacency.weight[edge]
    nobody = LabelEdges(nodes[:0], nodes[:0], nodes.numel(), graph.num_classes)
    return _block(graph, Adjacency(rowptr, col, weight, nodes.numel()), nodes, nobody)


def all_senders(graph: LabelGraph, classes: Tensor) -> LabelBlock:
    """What a layer reads to compute the labels `classes` from all nodes that show them; no nodes."""
    rows = graph.to_labels.classes
    nodes = rows.col[draw(rows, classes, None, (0, 0)).edge].long()
    senders = LabelEdges.among(graph.to_nodes.label_of[nodes], graph.num_classes)
    nothing = rows.col[:0]
    return _block(graph, Adjacency(torch.zeros_like(rows.rowptr[:1]), nothing, None, nodes.numel()), nodes, senders)


def _block(graph: LabelGraph, adjacency: Adjacency, nodes: Tensor, senders: LabelEdges) -> LabelBlock:
    labels_of = graph.to_nodes.label_of[nodes]
    shown = LabelEdges.among(labels_of[: adjacency.num_rows], graph.num_classes)
    return LabelBlock(
        adjacency=adjacency,
        shown=shown.shown,
        y=shown.y,
        num_classes=graph.num_classes,
        label_adjacency=graph.label_adjacency,
        nodes=nodes,
        senders=senders,
        degrees=graph.degree[nodes],
        labels_of=labels_of,
        edges_of=None,
        shown_by=graph.to_labels.count,
    )
