"""Every layer equals the dense reference that builds `A'`, values and gradients."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from tests.strategies import label_graphs
from torch import Tensor, nn

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import GAT, GCN, SAGE
from legnn.nn.reference import dense_layer

IN, OUT = 5, 6

LAYERS: dict[str, Callable[..., nn.Module]] = {
    "gcn": lambda **options: GCN(IN, OUT, **options),
    "sage": lambda **options: SAGE(IN, OUT, **options),
    "gat": lambda **options: GAT(IN, OUT, heads=2, **options),
    "gat, source attention": lambda **options: GAT(IN, OUT, heads=3, target_attention=False, **options),
    "gat, symmetric": lambda **options: GAT(IN, OUT, heads=2, symmetric_norm=True, **options),
    "gat, as published": lambda **options: GAT(
        IN, OUT, heads=1, target_attention=False, symmetric_norm=True, **options
    ),
}


def make(name: str, seed: int = 0, **options: object) -> nn.Module:
    torch.manual_seed(seed)
    if not name.startswith("gat"):
        options.pop("label_edges", None)
    layer = LAYERS[name](**options).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def inputs(graph: LabelGraph, seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = {"dtype": torch.float64, "generator": generator}
    x = torch.randn(graph.num_nodes, IN, **shape).requires_grad_()
    labels = torch.randn(graph.num_classes, IN, **shape).requires_grad_()
    return x, labels


def gradients(outputs: tuple[Tensor, Tensor], wrt: list[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    total = sum((out * torch.randn(out.shape, dtype=out.dtype, generator=generator)).sum() for out in outputs)
    found = torch.autograd.grad(total, wrt, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(wrt, found, strict=True)]


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@pytest.mark.parametrize("name", LAYERS)
@given(graph=label_graphs())
@settings(max_examples=60, deadline=None)
def test_an_enhanced_layer_equals_the_dense_reference(name: str, normalize: str, graph: LabelGraph) -> None:
    layer = make(name, normalize=normalize, label_edges=graph.label_adjacency is not None)
    x, labels = inputs(graph)
    wrt = [x, labels, *layer.parameters()]
    ours, reference = layer(x, labels, graph), dense_layer(layer, x, labels, graph)
    torch.testing.assert_close(ours, reference)
    torch.testing.assert_close(gradients(ours, wrt), gradients(reference, wrt))


@pytest.mark.parametrize("name", LAYERS)
@given(graph=label_graphs(label_edges=False))
@settings(max_examples=30, deadline=None)
def test_a_vanilla_layer_is_the_enhanced_one_with_no_label_shown(name: str, graph: LabelGraph) -> None:
    enhanced, vanilla = make(name), make(name, enhanced=False)
    vanilla.load_state_dict({k: v for k, v in enhanced.state_dict().items() if k in vanilla.state_dict()})
    x, labels = inputs(graph)
    none_shown = graph.show(graph.shown[:0], graph.y[:0])
    alone, nothing = vanilla(x, None, graph)
    assert nothing is None
    torch.testing.assert_close(alone, enhanced(x, labels, none_shown)[0])


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@pytest.mark.parametrize("name", LAYERS)
@given(graph=label_graphs(label_edges=False))
@settings(max_examples=20, deadline=None)
def test_the_last_layer_gives_the_same_nodes_without_label_parameters(
    name: str, normalize: str, graph: LabelGraph
) -> None:
    full, last = make(name, normalize=normalize), make(name, normalize=normalize, update_labels=False)
    last.load_state_dict({k: v for k, v in full.state_dict().items() if k in last.state_dict()})
    x, labels = inputs(graph)
    nodes, nothing = last(x, labels, graph)
    assert nothing is None
    torch.testing.assert_close(nodes, full(x, labels, graph)[0])
    unused = [p for p, g in zip(last.parameters(), _gradients_of(last, nodes), strict=True) if g is None]
    assert not unused, "every parameter of the last layer must be reached by the loss"


def _gradients_of(layer: nn.Module, out: Tensor) -> tuple[Tensor | None, ...]:
    return torch.autograd.grad(out.sum(), list(layer.parameters()), allow_unused=True)


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@pytest.mark.parametrize("name", LAYERS)
@given(graph=label_graphs())
@settings(max_examples=20, deadline=None)
def test_permuting_the_nodes_permutes_their_representations(name: str, normalize: str, graph: LabelGraph) -> None:
    layer = make(name, normalize=normalize, label_edges=True)
    x, labels = inputs(graph)
    new_place = torch.randperm(graph.num_nodes)
    moved = LabelGraph(
        Adjacency.from_edge_index(new_place[graph.adjacency.edge_index], graph.num_nodes, graph.adjacency.weight),
        new_place[graph.shown],
        graph.y,
        graph.num_classes,
        graph.label_adjacency,
    )
    nodes, new_labels = layer(x, labels, graph)
    moved_nodes, moved_labels = layer(x[new_place.argsort()], labels, moved)
    torch.testing.assert_close(moved_nodes[new_place], nodes)
    torch.testing.assert_close(moved_labels, new_labels)


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_an_edge_of_weight_two_counts_as_two_edges(name: str) -> None:
    layer = make(name, normalize="joint")
    edges = torch.tensor([[0, 1, 2, 1], [1, 0, 1, 2]])
    twice = torch.cat([edges, edges[:, :1]], 1)
    weighted = Adjacency.from_edge_index(edges, 3, torch.tensor([2.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    shown, y = torch.tensor([1]), torch.tensor([0])
    one = LabelGraph(weighted, shown, y, 2)
    other = LabelGraph(Adjacency.from_edge_index(twice, 3), shown, y, 2)
    x, labels = inputs(one)
    torch.testing.assert_close(layer(x, labels, one), layer(x, labels, other))


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_single_precision_uses_the_sparse_form_and_agrees(name: str) -> None:
    graph = LabelGraph(
        Adjacency.from_edge_index(torch.randint(0, 50, (2, 400)), 50), torch.arange(20), torch.arange(20) % 3, 3
    )
    layer = make(name)
    x, labels = inputs(graph)
    expected = dense_layer(layer, x, labels, graph)
    found = layer.float()(x.float(), labels.float(), graph)
    for ours, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, reference.float(), rtol=1e-4, atol=1e-4)


def test_heads_must_divide_the_channels() -> None:
    with pytest.raises(InputError, match="does not divide"):
        GAT(IN, 7, heads=2)
