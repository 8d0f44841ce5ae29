"""Label graphs for the operations: random ones, and one with a node that everybody knows."""

import torch

from legnn.graph import Adjacency, LabelGraph


def random_graph(nodes: int, edges: int, dtype: torch.dtype, *, weighted: bool, directed: bool = True) -> Adjacency:
    generator = torch.Generator().manual_seed(nodes + edges)
    edge_index = torch.randint(0, max(nodes, 1), (2, edges if nodes else 0), generator=generator)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype) + 0.1 if weighted else None
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
        weight = None if weight is None else weight.repeat(2)
    return Adjacency.from_edge_index(edge_index, nodes, weight)


def hub(nodes: int, dtype: torch.dtype, *, weighted: bool) -> Adjacency:
    """One node that everybody sends to and hears from."""
    others = torch.arange(nodes)
    edge_index = torch.cat(
        [torch.stack([others, torch.zeros_like(others)]), torch.stack([torch.zeros_like(others), others])], 1
    )
    generator = torch.Generator().manual_seed(nodes)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype) + 0.1 if weighted else None
    return Adjacency.from_edge_index(edge_index, nodes, weight)


def with_labels(adjacency: Adjacency, classes: int = 5, share: float = 0.5) -> LabelGraph:
    """Some nodes show a class, in no order; class 1 is shown by nobody."""
    generator = torch.Generator().manual_seed(adjacency.num_rows)
    shown = torch.randperm(adjacency.num_rows, generator=generator)[: round(share * adjacency.num_rows)]
    y = torch.randint(0, classes, (shown.numel(),), generator=generator)
    return LabelGraph(adjacency, shown, y.masked_fill(y == 1, 0), classes)


def dense(adjacency: Adjacency, dtype: torch.dtype) -> torch.Tensor:
    weight = torch.ones(adjacency.num_edges) if adjacency.weight is None else adjacency.weight
    matrix = torch.zeros(adjacency.num_rows, adjacency.num_cols, dtype=dtype)
    return matrix.index_put((adjacency.row, adjacency.col), weight.to(dtype), accumulate=True)


def one_hot(graph: LabelGraph) -> torch.Tensor:
    Y = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    Y[graph.shown, graph.y] = 1
    return Y


def gradients(outputs, wrt):
    """Of a random combination of the outputs, in double precision; zeros for what the outputs do not depend on."""
    generator = torch.Generator().manual_seed(5)
    total = sum((out * torch.randn(out.shape, generator=generator).to(out)).sum() for out in outputs)
    found = torch.autograd.grad(total, wrt, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, wrt, strict=True)]


SIZES = [(1, 0, 1), (1, 1, 1), (2, 5, 3), (63, 200, 60), (65, 1, 7), (200, 1000, 33)]
