"""Edges between nodes of different classes, as those that make the paper's syn-arxiv of ogbn-arxiv, for any graph."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from legnn.data.raw_graph import RawGraph
from legnn.errors import InputError, plural
from legnn.notes import Note


def with_cross_label_edges(graph: RawGraph, count: int, seed: int) -> RawGraph:
    """Returns the graph with `count` more edges, which come after its own and have the weight 1."""
    classes = torch.unique(graph.y[graph.y >= 0])
    if len(classes) < 2:
        problem = "no labeled node" if len(classes) == 0 else "labels of one class alone"
        raise InputError(
            f"`data.cross_label_edges={count}` joins labeled nodes of different classes, and {graph.name} has "
            f"{problem}; leave it out"
        )
    added = sample_cross_label_edges(graph.y, count, seed)
    weight = graph.edge_weight
    text = (
        f"{plural(count, 'edge')} between nodes of different classes {'was' if count == 1 else 'were'} added "
        f"(`data.cross_label_edges`, seed {seed}). All labels went into drawing them, those of test nodes too, so "
        f"scores are for the comparison of methods on this graph."
    )
    return replace(
        graph,
        edge_index=torch.cat([graph.edge_index, added], 1),
        edge_weight=None if weight is None else torch.cat([weight, torch.ones(count)]),
        notes=[*graph.notes, Note("cross-label-edges", text)],
    )


def sample_cross_label_edges(y: Tensor, count: int, seed: int) -> Tensor:
    """Returns edges `[2, count]` from `v_i` to `v_j`, drawn with replacement.

    `v_i` is uniform over the labeled nodes, and `v_j` over those of another class than that of `v_i`.

    Shapes: `y` int64 `[M]`, -1 is unlabeled; at least two classes have nodes.
    """
    label = y.numpy()
    labeled = np.flatnonzero(label >= 0)
    by_class = labeled[np.argsort(label[labeled], kind="stable")]
    size = np.bincount(label[labeled])
    first = np.cumsum(size) - size
    generator = np.random.default_rng(seed)
    source = by_class[generator.integers(0, len(by_class), count)]
    c = label[source]
    # a position among the nodes of the other classes: those from the first node of class c on are behind its last one
    position = generator.integers(0, len(by_class) - size[c])
    target = by_class[position + np.where(position >= first[c], size[c], 0)]
    return torch.from_numpy(np.stack([source, target]))
