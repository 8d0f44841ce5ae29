"""A typed model and a small graph in double precision, and sums by hand over its nodes."""

import torch
import torch.nn.functional as F
from tests.named import model_settings
from tests.nn.relation_graphs import CLASSES, RELATIONS, dense_relations, typed_graph
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn import DataShape

FEATURES, HIDDEN, HEADS = 4, 6, 2
WIDTH = HIDDEN // HEADS


def double_model(make: type, **options) -> nn.Module:
    """A model with random weights, also where training starts from zeros or ones."""
    settings = model_settings(hidden=HIDDEN, heads=HEADS, layers=2, **options)
    model = make(settings, DataShape(FEATURES, CLASSES, 3, RELATIONS)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model.eval()


def graph_and_inputs(model: nn.Module) -> tuple[LabelGraph, Tensor, object]:
    """The graph, `H⁰` computed node by node, and the inputs of the model."""
    graph = typed_graph(12)
    x = torch.randn(12, FEATURES, dtype=torch.float64)
    matrices = model.project.weight.split(FEATURES, dim=1)
    first = torch.stack([matrices[kind] @ row for kind, row in zip(graph.node_type.tolist(), x, strict=True)])
    return graph, first + model.project.bias, model.prepare(x, node_type=graph.node_type)


def neighbors(graph: LabelGraph) -> dict[tuple[int, int], list[list[int]]]:
    """The sources of the edges of each relation to each node, as often as there are edges."""
    return {
        relation: [[j for j, times in enumerate(row) for _ in range(round(times))] for row in A.tolist()]
        for relation, A in dense_relations(graph).items()
    }


def heads(row: Tensor) -> Tensor:
    """`[heads, d]`."""
    return row.unflatten(0, (HEADS, WIDTH))


def leaky(score: Tensor) -> Tensor:
    return F.leaky_relu(score, 0.2)


def attended(scores: list[Tensor], values: list[Tensor]) -> Tensor:
    """`Σ_j softmax_j(scores_j) values_j` `[D]` in each head, for scores `[heads]` and values `[D]`; zero of none."""
    if not values:
        return torch.zeros(HIDDEN, dtype=torch.float64)
    share = torch.softmax(torch.stack(scores), 0)[..., None]
    return (share * torch.stack([heads(value) for value in values])).sum(0).flatten()
