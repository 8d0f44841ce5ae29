"""The run or ensemble under audit, its graph, and samples of the nodes of each split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError
from legnn.runs import Predictor, Run
from legnn.runs.ensemble import load_graphs
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import MEMORY, hide_fold, load_graph

MOST_NODES = 5000
"""Nodes of a split that checks of the data look at: more would not change their findings."""


class Subject:
    """A run or an ensemble with the graph of each of its members, as the first of them reads it."""

    def __init__(self, run: Predictor, graphs: list[GraphData], device: str) -> None:
        self.run, self.graphs, self.device = run, graphs, device
        self.graph = graphs[0]
        self.y = self.graph.y.numpy()
        train, val, test = self.graph.train_mask, self.graph.val_mask, self.graph.test_mask
        self.test = _sample(test)
        # where training nodes are few, test nodes are compared with those of validation, too
        self.others = _sample(train if int(train.sum()) >= 10 * self.graph.num_classes else train | val)
        self.compared = np.concatenate([self.test, self.others])

    @property
    def fits(self) -> bool:
        """Whether the model can predict the graph: it has the features, classes and node types of the run."""
        graph, card = self.graph, self.run.card
        types = [] if graph.node_types is None else graph.node_types.names
        return [graph.num_features, graph.num_classes, types] == [card.features, len(card.classes), card.types]

    def probabilities(self, y: Tensor | None = None) -> Tensor:
        """`[M, C]` the predictions where the nodes have the labels `y` `[M]`, their current ones for None."""
        graphs = [graph if y is None else replace(graph, y=y) for graph in self.graphs]
        members = [replace(run, graph=graph) for run, graph in zip(self.run.members, graphs, strict=True)]
        return self.run.with_members(members).probabilities(device=self.device)[1]


def open_subject(run: Predictor, data: Source | None, device: str) -> Subject:
    """Returns the subject of an audit on the graph of `data`, or on the graph of the run as its files are now."""
    graphs = load_graphs(run.members, lambda run: _current_graph(run) if data is None else run.load_graph(data))
    return Subject(run, graphs, device)


def _current_graph(run: Run) -> GraphData:
    if run.graph is not None:
        return run.graph
    settings = run.settings.data
    if settings.source == MEMORY or run.folder is None:
        raise InputError(f"{run.folder} was trained on data in memory; give the same as `data`")
    graph = load_graph(settings, settings.source, RunFolder(run.folder).table_features)
    return graph if run.card.hidden_fold is None else hide_fold(graph, *run.card.hidden_fold)


def _sample(mask: Tensor) -> np.ndarray:
    nodes = mask.nonzero().flatten()
    if len(nodes) > MOST_NODES:
        nodes = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(0))[:MOST_NODES]]
    return nodes.numpy()
