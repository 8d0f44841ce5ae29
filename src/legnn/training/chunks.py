"""Which nodes each stage of layer-wise inference is computed for, and how they are divided into chunks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.graph.sampling import neighbors_of
from legnn.nn import StagedModel
from legnn.training.memory import NODES_AT_A_TIME


def needed_masks(graph: LabelGraph, nodes: Tensor, model: StagedModel, chunk_size: int) -> list[Tensor]:
    """`[M]` bool, of the input and of the output of every stage: from `nodes` back to those they depend on."""
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=nodes.device).index_fill(0, nodes, True)
    masks = [mask]
    for k in reversed(range(model.num_stages)):
        mask = mask.clone()
        if not bool(mask.all()):
            for rows in nodes_of(masks[0]):
                for index in split_by_work(count_edges(graph, rows), chunk_size):
                    mask[neighbors_of(graph.adjacency, rows[index])] = True
        if model.has_label_nodes and k + 1 < model.num_stages:
            # labels are computed in every stage but the last, from all nodes that show them
            mask[graph.shown] = True
        masks.insert(0, mask)
    return masks


def nodes_of(mask: Tensor) -> Iterator[Tensor]:
    """The nodes of `mask` `[M]` in order, some at a time."""
    for number, part in enumerate(mask.split(NODES_AT_A_TIME)):
        nodes = part.nonzero().flatten()
        if nodes.numel():
            yield nodes + number * NODES_AT_A_TIME


def count_edges(graph: LabelGraph, nodes: Tensor) -> Tensor:
    """`[n]` how many edges each of `nodes` `[n]` receives."""
    return graph.adjacency.rowptr[nodes + 1] - graph.adjacency.rowptr[nodes]


def split_by_work(work: Tensor, chunk_size: int) -> list[Tensor]:
    """Positions `0 … n - 1` in runs of about `chunk_size` of `work` `[n]` each."""
    if work.numel() == 0:
        return []
    part = (work + 1).long().cumsum(0) // chunk_size
    sizes = torch.unique_consecutive(part, return_counts=True)[1].tolist()
    return list(torch.arange(work.numel(), device=work.device).split(sizes))
