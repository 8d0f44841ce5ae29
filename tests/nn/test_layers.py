"""Every layer equals the dense reference that builds `A'`, values and gradients."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backbones import PLAIN
from tests.named import model_settings
from tests.strategies import label_graphs
from torch import Tensor, nn

from legnn.config.model import PublishedSettings
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import GAT, GCN, SAGE
from legnn.nn.published import GAT_VARIANTS, PublishedGAT, published_normalization
from legnn.nn.reference import dense_layer

IN, OUT = 5, 6
EXACT = {"rtol": 1e-12, "atol": 1e-12}

LAYERS: dict[str, Callable[..., nn.Module]] = {
    "gcn": lambda **options: GCN(IN, OUT, **options),
    "sage": lambda **options: SAGE(IN, OUT, **options),
    "gat": lambda **options: GAT(IN, OUT, heads=2, **options),
    "gat, target scores": lambda **options: variant(**options),
    "gat, source attention": lambda **options: variant(heads=3, target_attention=False, **options),
    "gat, symmetric": lambda **options: variant(symmetric_norm=True, **options),
    "gat, as published": lambda **options: variant(heads=1, target_attention=False, symmetric_norm=True, **options),
    "gat, scaled scores": lambda **options: variant(symmetric_norm=True, scaled_scores=True, **options),
    "gat, shared vectors": lambda **options: variant(attention_vectors="shared", **options),
    "gat, target map": lambda **options: variant(heads=3, target_map=True, **options),
    "gat, shared vectors, target map": lambda **options: variant(
        attention_vectors="shared", target_map=True, **options
    ),
}


def variant(heads: int = 2, **options: object) -> PublishedGAT:
    chosen = {name: options.pop(name) for name in GAT_VARIANTS if name in options}
    return PublishedGAT(IN, OUT, PublishedSettings(**chosen), heads=heads, **options)


def make(name: str, seed: int = 0, **options: object) -> nn.Module:
    torch.manual_seed(seed)
    weights = {name: options.pop(name) for name in ("node_weight", "absent_label") if name in options}
    if not name.startswith("gat"):
        options.pop("label_edges", None)
        layer = LAYERS[name](**options).double()
        layer.normalization = published_normalization(layer.normalization, model_settings(**weights))
    else:
        layer = (variant if name == "gat" and weights else LAYERS[name])(**weights, **options).double()
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
    weights = [torch.randn(out.shape, dtype=torch.float64, generator=generator) for out in outputs]
    total = sum((out * weight.to(out.dtype)).sum() for out, weight in zip(outputs, weights, strict=True))
    found = torch.autograd.grad(total, wrt, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(wrt, found, strict=True)]


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@pytest.mark.parametrize("name", LAYERS)
@given(graph=label_graphs())
@settings(max_examples=25, deadline=None)
def test_an_enhanced_layer_equals_the_dense_reference(name: str, normalize: str, graph: LabelGraph) -> None:
    layer = make(name, normalize=normalize, label_edges=graph.label_adjacency is not None)
    x, labels = inputs(graph)
    wrt = [x, labels, *layer.parameters()]
    ours, reference = layer(x, labels, graph), dense_layer(layer, x, labels, graph)
    torch.testing.assert_close(ours, reference, **EXACT)
    torch.testing.assert_close(gradients(ours, wrt), gradients(reference, wrt), **EXACT)


@pytest.mark.parametrize("absent_label", ["skip", "zero"])
@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "gat, scaled scores"])
@given(graph=label_graphs(), node_weight=st.sampled_from([0.25, 1.0, 2.0]))
@settings(max_examples=20, deadline=None)
def test_a_weighted_mean_of_the_relations_equals_the_dense_reference(
    name: str, absent_label: str, graph: LabelGraph, node_weight: float
) -> None:
    options = {"node_weight": node_weight, "absent_label": absent_label}
    layer = make(name, label_edges=graph.label_adjacency is not None, **options)
    x, labels = inputs(graph)
    wrt = [x, labels, *layer.parameters()]
    ours, reference = layer(x, labels, graph), dense_layer(layer, x, labels, graph)
    torch.testing.assert_close(ours, reference, **EXACT)
    torch.testing.assert_close(gradients(ours, wrt), gradients(reference, wrt), **EXACT)


@pytest.mark.parametrize("name", PLAIN)
@given(graph=label_graphs(label_edges=False), node_weight=st.floats(0.1, 10))
@settings(max_examples=12, deadline=None)
def test_a_label_that_counts_as_zero_scales_the_neighbors_by_the_same_number_in_every_node(
    name: str, graph: LabelGraph, node_weight: float
) -> None:
    alone, mean = make(name, enhanced=False), make(name, node_weight=node_weight, absent_label="zero")
    mean.load_state_dict({**mean.state_dict(), **alone.state_dict()})
    x, labels = inputs(graph)
    hidden = torch.ones(graph.num_nodes, dtype=torch.bool).index_fill(0, graph.shown, False)
    at_zero = [layer(torch.zeros_like(x), one, graph)[0] for layer, one in ((alone, None), (mean, 0 * labels))]
    neighbors, whole = alone(x, None, graph)[0] - at_zero[0], mean(x, labels, graph)[0] - at_zero[1]
    if name == "sage":  # the root is no message
        neighbors, whole = (out - x @ alone.root.weight.T for out in (neighbors, whole))
    torch.testing.assert_close(whole[hidden], neighbors[hidden] * node_weight / (node_weight + 1))


@pytest.mark.parametrize("name", LAYERS)
@given(graph=label_graphs(label_edges=False))
@settings(max_examples=15, deadline=None)
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
@settings(max_examples=12, deadline=None)
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
@settings(max_examples=12, deadline=None)
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


@pytest.mark.parametrize("name", PLAIN)
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


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "gat, scaled scores", "gat, target map"])
def test_single_precision_uses_the_sparse_form_and_agrees(name: str, normalize: str) -> None:
    graph = LabelGraph(
        Adjacency.from_edge_index(torch.randint(0, 50, (2, 400)), 50), torch.arange(20), torch.arange(20) % 3, 3
    )
    layer = make(name, normalize=normalize)
    x, labels = inputs(graph)
    expected = dense_layer(layer, x, labels, graph)
    expected_gradients = gradients(expected, [x, labels, *layer.parameters()])
    layer.float()
    single = [one.detach().float().requires_grad_() for one in (x, labels)]
    found = layer(*single, graph)
    found_gradients = gradients(found, [*single, *layer.parameters()])
    exact = {"rtol": 1e-3, "atol": 1e-3}
    for ours, reference in zip((*found, *found_gradients), (*expected, *expected_gradients), strict=True):
        torch.testing.assert_close(ours.double(), reference, **exact)


def test_heads_must_divide_the_channels() -> None:
    with pytest.raises(InputError, match="does not divide"):
        GAT(IN, 7, heads=2)


def small_call(name: str) -> tuple[nn.Module, Tensor, Tensor, LabelGraph]:
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]), 4)
    graph = LabelGraph(adjacency, torch.tensor([0, 1]), torch.tensor([0, 1]), 3)
    return make(name).float(), torch.randn(4, IN), torch.randn(3, IN), graph


WRONG_STATES: dict[str, Callable[[Tensor], object]] = {
    "integers": lambda x: x.long(),
    "complex": lambda x: x.to(torch.complex64),
    "one dimension": lambda x: x[:, 0],
    "too few rows": lambda x: x[1:],
    "too many rows": lambda x: torch.cat([x, x]),
    "too few columns": lambda x: x[:, 1:],
    "too many columns": lambda x: torch.cat([x, x], 1),
    "an array": lambda x: x.numpy(),
}


@pytest.mark.parametrize("change", WRONG_STATES)
@pytest.mark.parametrize("name", PLAIN)
def test_wrong_states_are_refused_by_the_name_of_the_argument(name: str, change: str) -> None:
    layer, x, labels, graph = small_call(name)
    with pytest.raises(InputError, match=r"\bx must"):
        layer(WRONG_STATES[change](x), labels, graph)
    with pytest.raises(InputError, match=r"\blabels must"):
        layer(x, WRONG_STATES[change](labels), graph)


@pytest.mark.parametrize("name", PLAIN)
def test_an_edge_index_is_no_graph(name: str) -> None:
    layer, x, labels, graph = small_call(name)
    with pytest.raises(InputError, match="graph must be a LabelGraph, got Tensor"):
        layer(x, labels, graph.adjacency.edge_index)


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"dropout": rate}, "dropout") for rate in (1.0, 2.0, -0.5, float("nan"))] + [({"normalize": "foo"}, "normalize")],
)
@pytest.mark.parametrize("layer", [GCN, SAGE, GAT])
def test_wrong_options_are_refused_by_name(layer: type[nn.Module], options: dict[str, object], argument: str) -> None:
    with pytest.raises(InputError, match=rf"\b{argument} must"):
        layer(IN, OUT, **options)


@pytest.mark.parametrize("heads", [0, -1])
def test_there_is_at_least_one_head(heads: int) -> None:
    with pytest.raises(InputError, match="heads must be at least 1"):
        GAT(IN, OUT, heads=heads)
