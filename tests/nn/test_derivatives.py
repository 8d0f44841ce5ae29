"""First and second derivatives of every layer are those of finite differences, in both precisions."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from legnn.graph import Adjacency, LabelGraph
from legnn.nn import GAT, GCN, SAGE
from legnn.nn.gcnii import GCNII
from legnn.nn.hgt import HGT
from legnn.nn.rgcn import RGCN

CHANNELS, CLASSES, NODES = 4, 3, 6
TYPED = {"num_types": 2, "relations": ((0, 0), (0, 1), (1, 0))}

LAYERS: dict[str, Callable[..., nn.Module]] = {
    "gcn": partial(GCN, CHANNELS, CHANNELS),
    "gcn, joint": partial(GCN, CHANNELS, CHANNELS, normalize="joint"),
    "sage": partial(SAGE, CHANNELS, CHANNELS),
    "sage, joint": partial(SAGE, CHANNELS, CHANNELS, normalize="joint"),
    "gat": partial(GAT, CHANNELS, CHANNELS, heads=2),
    "gat, joint": partial(GAT, CHANNELS, CHANNELS, heads=2, normalize="joint"),
    "gcnii": partial(GCNII, CHANNELS, restart=0.3, beta=0.4),
    "rgcn": partial(RGCN, CHANNELS, CHANNELS, **TYPED),
    "hgt": partial(HGT, CHANNELS, CHANNELS, heads=2, **TYPED),
}


def graph_of(name: str, *, weighted: bool) -> LabelGraph:
    """A self-loop, parallel edges, and a node without any; two classes are shown."""
    edge_index = torch.tensor([[0, 1, 1, 2, 3, 3, 0, 4, 2], [1, 0, 2, 1, 3, 2, 1, 3, 4]])
    types = torch.tensor([0, 0, 0, 1, 0, 0]) if name in ("rgcn", "hgt") else None
    if types is not None:
        is_related = torch.tensor([tuple(pair) in TYPED["relations"] for pair in types[edge_index].T.tolist()])
        edge_index = edge_index[:, is_related]
    weight = torch.linspace(0.5, 2, edge_index.size(1)) if weighted else None
    adjacency = Adjacency.from_edge_index(edge_index, NODES, weight)
    graph = LabelGraph.without_labels(adjacency, CLASSES, node_type=types)
    return graph.show(torch.tensor([0, 2, 3]), torch.tensor([1, 0, 1]))


def make(name: str, graph: LabelGraph, dtype: torch.dtype) -> tuple[Callable[..., tuple[Tensor, Tensor]], list[Tensor]]:
    """A layer as a function, and the tensors to derive by: its inputs and its parameters, which the layer reads."""
    torch.manual_seed(0)
    layer = LAYERS[name]().double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    shapes = [(NODES, CHANNELS), (CLASSES, CHANNELS)] * (2 if name == "gcnii" else 1)
    inputs = [torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]
    layer.to(dtype)

    def function(x: Tensor, labels: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        return layer(x, labels, graph, None, others[:2]) if name == "gcnii" else layer(x, labels, graph)

    return function, [*inputs, *layer.parameters()]


def derivatives(name: str, graph: LabelGraph, dtype: torch.dtype) -> tuple[tuple[Tensor, ...], ...]:
    """The gradients of the squared outputs, and those of their own squares."""
    function, tensors = make(name, graph, dtype)
    total = sum(part.square().sum() for part in function(*tensors))
    first = torch.autograd.grad(total, tensors, create_graph=True)
    penalty = sum(gradient.square().sum() for gradient in first)
    return first, torch.autograd.grad(penalty, tensors)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_derivatives_in_double_precision_equal_finite_differences(name: str, weighted: bool) -> None:
    function, tensors = make(name, graph_of(name, weighted=weighted), torch.float64)
    assert torch.autograd.gradcheck(function, tensors)
    assert torch.autograd.gradgradcheck(function, tensors, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_derivatives_in_single_precision_equal_those_in_double(name: str, weighted: bool) -> None:
    exact, rounded = (
        derivatives(name, graph_of(name, weighted=weighted), dtype) for dtype in (torch.float64, torch.float32)
    )
    for order, ours, expected in zip(("first", "second"), rounded, exact, strict=True):
        largest = max(gradient.abs().max() for gradient in expected)
        for gradient, exact_gradient in zip(ours, expected, strict=True):
            # some are zero but for rounding: a softmax does not change if all its scores do alike
            scale = exact_gradient.detach().abs().max().clamp(min=largest.detach() / 100)
            error = float((gradient - exact_gradient).detach().abs().max() / scale)
            assert error < 1e-4, f"{order} derivatives"
