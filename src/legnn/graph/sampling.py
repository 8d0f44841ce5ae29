"""Blocks of a label graph: from a sample of the neighbors for mini-batches, from all of them for layer-wise inference.

`ops.sample` draws the edges; here they become blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.ops.backend import backend
from legnn.ops.checks import check_count, check_index
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.sample import DrawnLayer, DrawnNodes, Fanout, SamplingOptions, SamplingView


def sample_label_graph(
    graph: LabelGraph,
    seeds: Tensor,
    fanouts: Sequence[Fanout] | SamplingOptions,
    key: tuple[int, int],
    *,
    edges: bool = False,
) -> SampledLabelGraph:
    """Returns the blocks from which the layers compute `seeds`.

    Sums over sampled neighbors, as in GCN and GraphSAGE, are unbiased; a softmax over them, as in GAT, is biased.

    In layer `k` every node that is computed draws `fanouts[k]` of its incoming edges, and every label that a later
    layer reads draws as many of the nodes that show it. No seed shows its label, neither to itself nor to any other
    node: what the label receives from a seed would come back to it.

    Args:
        graph: the whole graph.
        seeds: `[B]` nodes, each once, or a boolean mask `[M]`.
        fanouts: one for each layer, from the input on, as the paper gives them: `(15, 10, 5)`; None for all neighbors.
            Or `SamplingOptions`, which hold them.
        key: two 32-bit words, which determine what is drawn.
        edges: whether the adjacency of each block has `edge`, the position of its edges in the whole graph.
    """
    options = fanouts if isinstance(fanouts, SamplingOptions) else SamplingOptions(fanouts, edges)
    options = replace(options, fanouts=check_fanouts(options.fanouts))
    device = graph.adjacency.col.device
    seeds = check_index("seeds", seeds, graph.num_nodes, distinct=True, mask=True, device=device)
    if not isinstance(key, tuple) or len(key) != 2 or any(check_count("key", word) >= 2**32 for word in key):
        raise InputError(f"`key` must be a tuple of two integers below 2**32, not {key!r}")
    return draw_blocks(graph, seeds, options, key)


def check_fanouts(fanouts: Sequence[Fanout]) -> tuple[Fanout, ...]:
    """Returns the fanouts, positive integers or None for all neighbors; none for a model that reads no neighbors."""
    if not isinstance(fanouts, Sequence) or isinstance(fanouts, str):
        raise InputError(f"`fanouts` must be a sequence with a number for each layer, not {fanouts!r}")
    return tuple(None if fanout is None else check_count("fanouts", fanout, 1) for fanout in fanouts)


def draw_blocks(graph: LabelGraph, seeds: Tensor, options: SamplingOptions, key: tuple[int, int]) -> SampledLabelGraph:
    """`sample_label_graph` without checks, which would synchronize; `seeds` are int64."""
    view = sampling_view(graph, seeds)
    layers, drawn = _draw(graph, view, seeds, options, key)
    # a block reads the nodes that the block before it computes, the first one all nodes
    size_in = drawn.nodes.numel()
    sizes = [size_in, *(layer.num_targets for layer in layers[:0:-1])][: len(layers)]
    shown_count = view.class_rowptr.diff().long()
    node_type = None if graph.node_type is None else graph.node_type[drawn.nodes]
    blocks = []
    shown_by_targets = drawn.shown_by_targets[::-1]
    for layer, size, shown, fanout in zip(layers[::-1], sizes, shown_by_targets, options.fanouts, strict=True):
        rowptr, col = layer.rowptr[: layer.num_targets + 1], layer.col[: layer.num_edges]
        edge = None if layer.edge is None else layer.edge[: layer.num_edges]
        weight = None if graph.adjacency.weight is None or edge is None else graph.adjacency.weight[edge]
        sender = layer.col[layer.num_edges :].long()
        block = LabelBlock(
            adjacency=Adjacency.sampled(rowptr, col, weight, size, fanout, edge if options.edges else None),
            shown=drawn.shown[:shown],
            y=drawn.y[:shown],
            num_classes=graph.num_classes,
            label_adjacency=graph.label_adjacency,
            node_type=None if node_type is None else node_type[:size],
            nodes=drawn.nodes[:size],
            senders=LabelEdges(sender, drawn.label_of[sender].long(), size, graph.num_classes),
            source_degrees=drawn.degree[:size],
            source_labels=drawn.label_of[:size],
            edge_count=None if fanout is None else layer.edge_count,
            shown_count=shown_count,
        )
        blocks.append(block)
    return SampledLabelGraph(drawn.nodes, blocks, LabelEdges(drawn.shown, drawn.y, size_in, graph.num_classes))


def full_node_block(graph: LabelGraph, nodes: Tensor) -> LabelBlock:
    """Returns the block from which a layer computes `nodes`, each once, from all neighbors; it computes no labels."""
    adjacency = graph.adjacency
    targets = check_index("nodes", nodes, graph.num_nodes, distinct=True, mask=True, device=adjacency.col.device)
    view = sampling_view(graph, targets[:0])
    (layer,), drawn = _draw(graph, view, targets, SamplingOptions([None]), (0, 0))
    # the first layer to be drawn draws for no label: every edge is one of the targets
    rowptr = layer.rowptr[: targets.numel() + 1]
    weight = None if adjacency.weight is None or layer.edge is None else adjacency.weight[layer.edge]
    sources = drawn.nodes
    senders = LabelEdges(sources[:0], sources[:0], sources.numel(), graph.num_classes)
    return _full_block(graph, Adjacency(rowptr, layer.col, weight, sources.numel()), sources, senders)


def full_label_block(graph: LabelGraph, classes: Tensor) -> LabelBlock:
    """Returns the block from which a layer computes the labels `classes`, each once, from all nodes that show them.

    It computes no nodes.
    """
    rows = graph.to_labels.classes
    nodes = neighbors_of(rows, check_index("classes", classes, graph.num_classes, distinct=True))
    senders = LabelEdges.from_label_of(graph.to_nodes.label_of[nodes], graph.num_classes)
    adjacency = Adjacency(torch.zeros_like(rows.rowptr[:1]), rows.col[:0], None, nodes.numel())
    return _full_block(graph, adjacency, nodes, senders)


def neighbors_of(adjacency: Adjacency, rows: Tensor) -> Tensor:
    """Returns the columns of all edges of `rows`, row after row."""
    return adjacency.col[adjacency.edges_of(rows)].long()


def sampling_view(graph: LabelGraph, seeds: Tensor) -> SamplingView:
    """The rows to draw edges from when `seeds` show no label."""
    adjacency, labels = graph.adjacency, graph.to_labels
    classes = labels.classes
    view = SamplingView(
        rowptr=adjacency.rowptr,
        col=adjacency.col,
        degree=graph.degree,
        label_of=labels.label_of,
        class_rowptr=classes.rowptr,
        class_col=classes.col,
        excluded_positions=classes.rowptr[:0],
        reads_all_labels=graph.label_adjacency is not None,
    )
    if labels.is_empty:
        return view
    # positions past the end, of seeds that show no label anyway, do no harm
    hidden = labels.position_in_classes[seeds].sort().values
    excluded = hidden - torch.arange(hidden.numel(), dtype=hidden.dtype, device=hidden.device)
    rowptr = classes.rowptr - torch.searchsorted(hidden, classes.rowptr, out_int32=True)
    return replace(view, class_rowptr=rowptr, excluded_positions=excluded)


def _draw(
    graph: LabelGraph, view: SamplingView, seeds: Tensor, options: SamplingOptions, key: tuple[int, int]
) -> tuple[list[DrawnLayer], DrawnNodes]:
    """The layers from the last one to the first, and their nodes; weighted edges are always numbered."""
    options = replace(options, edges=options.edges or graph.adjacency.weight is not None)
    with borrow_zeros(graph.adjacency) as scratch:
        layers, nodes = backend("sample", seeds.device).draw_sample(view, seeds, options, key, scratch)
    return layers, nodes


@contextmanager
def borrow_zeros(adjacency: Adjacency) -> Iterator[Tensor]:
    """Yields int32 zeros `[cols]` for one thread, which must be zeros again at the end; an error discards them."""
    device = adjacency.col.device
    # by stream: on another one the next sample could begin before the last one's kernels have run
    stream = torch.get_device_module(device).current_stream(device)
    pool: list[Tensor] = adjacency.cached(("zeros for a sample", stream), list)
    try:
        zeros = pool.pop()
    except IndexError:
        zeros = torch.zeros(adjacency.num_cols, dtype=torch.int32, device=device)
    yield zeros
    pool.append(zeros)


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
