"""The columns of the paper's table of data sets, and notes on what scores are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from legnn.config.facts import Statistics
from legnn.data.splits import SPLITS
from legnn.errors import some_of
from legnn.notes import Note

if TYPE_CHECKING:
    from legnn.data.graph_data import GraphData

CHUNK = 1 << 22
"""Edges whose classes are gathered together: a copy for all of them would be as large as the graph."""


def statistics(graph: GraphData) -> Statistics:
    """Returns size, split and homophily of a graph."""
    targets = graph.num_nodes if graph.node_types is None else int(graph.node_types.target_mask.sum())
    train, val, test = (100 * int(mask.sum()) / targets for mask in (graph.train_mask, graph.val_mask, graph.test_mask))
    return Statistics(
        name=graph.name,
        nodes=graph.num_nodes,
        edges=graph.provenance.raw_edges,
        features=graph.num_features,
        classes=graph.num_classes,
        labeled=int((graph.y >= 0).sum()),
        train_percent=train,
        val_percent=val,
        test_percent=test,
        homophily=graph.provenance.homophily,
    )


def missing_class_notes(graph: GraphData) -> list[Note]:
    """A note for each split that has nodes, but not of every class: its scores say nothing of the others."""
    notes = []
    for value, split in enumerate(SPLITS, 1):
        count = torch.bincount(graph.y[graph.split == value], minlength=graph.num_classes)
        missing = [str(graph.class_names[c]) for c in (count == 0).nonzero().flatten().tolist()]
        if missing and len(missing) < graph.num_classes:
            lacking = f"{len(missing)} of {graph.num_classes} classes: {some_of(missing)}"
            notes.append(Note("missing-class", f"the {split} split has no nodes of {lacking}."))
    return notes


def edge_homophily(edge_index: Tensor, y: Tensor) -> float:
    """Returns the fraction of edges [2, E] whose ends share a class `y` [M], over those with both ends labeled.

    NaN if there are no such edges.
    """
    labeled, alike = 0, 0
    for source, target in zip(edge_index[0].split(CHUNK), edge_index[1].split(CHUNK), strict=True):
        of_source, of_target = y[source], y[target]
        both_labeled = (of_source >= 0) & (of_target >= 0)
        labeled += int(both_labeled.sum())
        alike += int((both_labeled & (of_source == of_target)).sum())
    return alike / labeled if labeled else float("nan")
