"""Small label graphs with several node types, whose nodes are in no order of types."""

from collections.abc import Sequence

import torch
from torch import Tensor

from legnn.graph import Adjacency, LabelGraph

CLASSES = 3
EXACT = {"rtol": 1e-10, "atol": 1e-10}
RELATIONS = ((0, 0), (0, 1), (1, 0), (1, 2), (2, 1))
"""Of three types: nobody sends from type 0 to type 2 or back."""


def typed_graph(
    nodes: int = 12, *, weighted: bool = False, label_edges: bool = False, ordered: bool = False, shown: int = 5
) -> LabelGraph:
    """Parallel edges, a node without any, a class that nobody shows; types are in order only if `ordered`."""
    generator = torch.Generator().manual_seed(nodes)
    types = torch.arange(nodes) % 3
    types = types.sort().values if ordered else types[torch.randperm(nodes, generator=generator)]
    ends = torch.randint(0, nodes - 1, (2, 8 * nodes), generator=generator)
    allowed = torch.tensor([pair in RELATIONS for pair in zip(*types[ends].tolist(), strict=True)])
    ends = ends[:, allowed]
    weight = torch.rand(ends.size(1), generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    among = None
    if label_edges:
        among = torch.rand(CLASSES, CLASSES, generator=generator, dtype=torch.float64)
        among[1] = 0
    who = torch.randperm(nodes, generator=generator)[:shown]
    adjacency = Adjacency.from_edge_index(ends, nodes, weight)
    return LabelGraph(adjacency, who, who % (CLASSES - 1), CLASSES, among, types)


def dense_relations(graph: LabelGraph) -> dict[tuple[int, int], Tensor]:
    """`A_r` `[M, M]` of each relation, with targets as rows."""
    assert graph.node_type is not None
    types = graph.node_type
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    weight = torch.ones(graph.adjacency.num_edges) if graph.adjacency.weight is None else graph.adjacency.weight
    for source, target, value in zip(*graph.adjacency.edge_index.tolist(), weight.tolist(), strict=True):
        A[target, source] += value
    return {(s, t): A * (types == t)[:, None] * (types == s) for s, t in RELATIONS}


def one_hot(graph: LabelGraph) -> Tensor:
    """`Y` `[M, C]`."""
    Y = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    Y[graph.shown, graph.y] = 1
    return Y


def row_mean(A: Tensor) -> Tensor:
    """`A` with rows that sum to 1, or to 0 where a row is zero."""
    total = A.sum(1, keepdim=True)
    return A / total.masked_fill(total == 0, 1.0)


def compare(found: Sequence[Tensor | None], expected: Sequence[Tensor | None], wrt: list[Tensor]) -> None:
    """Values and gradients are the same."""
    pairs = [(one, other) for one, other in zip(found, expected, strict=True) if other is not None]
    seeds = [torch.randn_like(other) for _, other in pairs]
    for one, other in pairs:
        torch.testing.assert_close(one, other, **EXACT)
    mine, theirs = (torch.autograd.grad([pair[k] for pair in pairs], wrt, seeds, allow_unused=True) for k in range(2))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, **EXACT)
