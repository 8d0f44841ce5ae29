"""A label graph in PyG's loaders: a sampler, and the graph as `HeteroData`.

>>> data = hetero_data(graph, x, y)
>>> sampler = LabelGraphSampler(graph, (15, 10, 5))
>>> loader = NodeLoader(data, sampler, input_nodes=("node", train_index), batch_size=1024, shuffle=True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput

from legnn.errors import InputError
from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.graph.sampling import check_fanouts, sample_label_graph
from legnn.ops.checks import check_tensor
from legnn.ops.sample import Fanout

NODE, LABEL = "node", "label"
TO = (NODE, "to", NODE)
LABELS = (LABEL, "labels", NODE)
SHOWS = (NODE, "shows", LABEL)


def hetero_data(
    graph: LabelGraph, x: Tensor, y: Tensor | None = None, label_features: Tensor | None = None
) -> HeteroData:
    """Returns the graph with node types `node` and `label`, for a loader with `LabelGraphSampler`.

    Args:
        graph: its edges keep their order.
        x: `[M, F]` features of the nodes.
        y: `[M]` classes of the nodes.
        label_features: `[C, ·]` features of the labels; one-hot if not given.
    """
    for name, values, rows in (
        ("x", x, graph.num_nodes),
        ("y", y, graph.num_nodes),
        ("label_features", label_features, graph.num_classes),
    ):
        if values is not None and check_tensor(name, values).shape[:1] != (rows,):
            raise InputError(f"`{name}` must have {rows} rows, not the shape {tuple(values.shape)}")
    data = HeteroData()
    data[NODE].x = x
    if y is not None:
        data[NODE].y = y
    data[LABEL].x = torch.eye(graph.num_classes, device=x.device) if label_features is None else label_features
    data[TO].edge_index = graph.adjacency.edge_index
    if graph.adjacency.weight is not None:
        data[TO].edge_weight = graph.adjacency.weight
    data[LABELS].edge_index = torch.stack([graph.y, graph.shown])
    data[SHOWS].edge_index = torch.stack([graph.shown, graph.y])
    return data


class LabelGraphSampler(BaseSampler):
    """Samples a label graph for PyG's `NodeLoader`; needs neither `pyg-lib` nor `torch-sparse`.

    `fanouts` are those of `sample_label_graph`, from the input on. A batch has the nodes of all layers, seeds first;
    every label; and each edge that any layer drew, once. No seed shows its label. Keys come from PyTorch's default
    generator, which a loader seeds for each worker and epoch.
    """

    def __init__(self, graph: LabelGraph, fanouts: Sequence[Fanout]) -> None:
        if graph.label_adjacency is not None:
            raise InputError("PyG's sampler cannot return label–label edges; give a label graph without them")
        self.graph, self.fanouts = graph, check_fanouts(fanouts)
        # computed here once, and not in every worker
        _ = graph.degree, graph.to_labels.position_in_classes

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> HeteroSamplerOutput:
        """Returns a batch for the seeds `index.node`."""
        if index.input_type not in (None, NODE):
            raise InputError(f"seeds are nodes of the type {NODE!r}, not {index.input_type!r}")
        low, high = torch.randint(2**32, (2,)).tolist()
        seeds = index.node.to(self.graph.shown.device)
        sampled = sample_label_graph(self.graph, seeds, self.fanouts, (low, high), edges=True)
        return _output(sampled, self.graph.num_classes, (index.input_id, index.time))

    def sample_from_edges(self, index: object, neg_sampling: object = None) -> NoReturn:
        """Raises `NotImplementedError`: nodes are classified, not edges."""
        raise NotImplementedError("LabelGraphSampler samples around nodes")


def _output(sampled: SampledLabelGraph, num_classes: int, metadata: tuple[Tensor | None, Tensor | None]) -> Any:
    """The union of the blocks; nodes and edges nearer to the seeds come first."""
    blocks = sampled.blocks[::-1]
    edge, source, target, num_edges = _unique_by(
        [block.adjacency.edge for block in blocks if block.adjacency.edge is not None],
        [block.adjacency.col for block in blocks],
        [block.adjacency.row for block in blocks],
    )
    _, sender, sent_to, num_sent = _unique_by(
        [block.senders.shown for block in blocks],
        [block.senders.shown for block in blocks],
        [block.senders.y for block in blocks],
    )
    shown, y = blocks[-1].shown, blocks[-1].y
    return HeteroSamplerOutput(
        node={NODE: sampled.nodes, LABEL: torch.arange(num_classes, device=shown.device)},
        row={TO: source, LABELS: y, SHOWS: sender},
        col={TO: target, LABELS: shown, SHOWS: sent_to},
        edge={TO: edge, LABELS: None, SHOWS: None},
        num_sampled_nodes={
            NODE: _steps([blocks[0].num_nodes, *(block.nodes.numel() for block in blocks)]),
            LABEL: [num_classes, *[0] * len(blocks)],
        },
        num_sampled_edges={
            TO: num_edges,
            LABELS: _steps([block.shown.numel() for block in blocks]),
            SHOWS: num_sent,
        },
        metadata=metadata,
    )


def _unique_by(
    keys: list[Tensor], first: list[Tensor], second: list[Tensor]
) -> tuple[Tensor, Tensor, Tensor, list[int]]:
    """Keeps the first entry of each key, in order; also returns how many entries of each part are kept."""
    key = torch.cat(keys).long()
    _, order = torch.sort(key, stable=True)
    again = torch.zeros(key.numel(), dtype=torch.bool, device=key.device)
    again[order[1:]] = key[order[1:]] == key[order[:-1]]
    is_first = ~again
    counts = [int(part.sum()) for part in is_first.split([part.numel() for part in keys])]
    return key[is_first], torch.cat(first).long()[is_first], torch.cat(second).long()[is_first], counts


def _steps(sizes: list[int]) -> list[int]:
    """The difference of each size to the one before."""
    return [size - before for before, size in zip([0, *sizes], sizes, strict=False)]
