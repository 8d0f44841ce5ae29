"""What the tests of other designs share: a small graph, and models of double precision on it."""

from __future__ import annotations

import torch
from tests.named import model_settings
from torch import Tensor

from legnn.baselines import ARCHITECTURES
from legnn.config.designs import DESIGNS
from legnn.config.model import ModelSettings
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape, Model, StagedModel
from legnn.training import Task

NODES, FEATURES, CLASSES = 24, 5, 3

UNTYPED = {design.model.get("model.architecture", "legnn") for design in DESIGNS.values() if not design.is_typed}
TYPED = [name for name in ARCHITECTURES if name not in {*UNTYPED, "label_propagation"}]
"""Designs that need several node types."""
OTHERS = [name for name in ARCHITECTURES if name != "legnn"]


def settings_of(name: str, **options) -> ModelSettings:
    small = {"hidden": 8, "layers": 2, "heads": 2, "hops": 3, "norm": "layer", "trees": 3}
    return model_settings(architecture=name, **{**small, **options})


def node_types(name: str) -> Tensor | None:
    """The types of the nodes of the graph on which `name` can be trained."""
    return torch.arange(NODES) % 2 if name in TYPED else None


def graph_for(name: str, *, weighted: bool = False, loops: bool = True) -> LabelGraph:
    """A directed graph with parallel edges, a node that has its self-loop alone, and some shown labels."""
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(0, NODES - 1, (2, 3 * NODES), generator=generator)
    if loops:
        edge_index = torch.cat([edge_index, torch.arange(NODES).repeat(2, 1)], 1)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    adjacency, shown = Adjacency.from_edge_index(edge_index, NODES, weight), torch.arange(4, 14)
    return LabelGraph(adjacency, shown, shown % CLASSES, CLASSES, node_type=node_types(name))


def shape_for(name: str, graph: LabelGraph) -> DataShape:
    pairs = () if graph.node_type is None else ((0, 0), (0, 1), (1, 0), (1, 1))
    return DataShape(FEATURES, CLASSES, 2 if pairs else 1, pairs, graph.adjacency.num_edges)


def make(name: str, graph: LabelGraph | None = None, **options) -> Model:
    """A model of double precision in evaluation mode."""
    torch.manual_seed(0)
    model = ARCHITECTURES[name](settings_of(name, **options), shape_for(name, graph or graph_for(name)))
    for norm in model.modules():
        if isinstance(norm, torch.nn.BatchNorm1d):
            # statistics that do something
            norm.running_mean = torch.randn_like(norm.running_mean)
            norm.running_var = torch.rand_like(norm.running_var) + 0.5
    return model.double().eval()


def features(share: float = 1.0) -> Tensor:
    """`[M, F]`, a part of them not zero."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64)
    return x * (torch.rand(NODES, FEATURES, generator=generator) < share)


def task_for(graph: LabelGraph, x: Tensor) -> Task:
    """The task in which the first nodes are for training."""
    nodes = torch.arange(NODES)
    empty = LabelGraph.without_labels(graph.adjacency, CLASSES, node_type=graph.node_type)
    return Task(x, empty, nodes % CLASSES, nodes[:12], nodes[12:], nodes[:0], nodes[12:], graph.node_type)


def is_staged(name: str) -> bool:
    return isinstance(make(name), StagedModel)


def normalized(graph: LabelGraph) -> Tensor:
    """`Â = D^{-1/2} A D^{-1/2}` `[M, M]`, zero where a node has no edges."""
    adjacency = graph.adjacency
    weight = torch.ones(adjacency.num_edges) if adjacency.weight is None else adjacency.weight
    A = torch.zeros(NODES, NODES, dtype=torch.float64)
    A.index_put_((adjacency.row, adjacency.col), weight.double(), accumulate=True)
    scale = A.sum(1).pow(-0.5).nan_to_num(posinf=0.0)
    return scale[:, None] * A * scale


def neighbors(graph: LabelGraph, node: int) -> list[int]:
    """The sources of the edges of a node."""
    begin, end = graph.adjacency.rowptr[node : node + 2].tolist()
    return graph.adjacency.col[begin:end].tolist()
