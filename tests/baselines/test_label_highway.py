"""Label highways: the product with `A ∪ S` that is never built equals the one that is."""

import pytest
import torch
from hypothesis import given, settings
from tests.graphs import small_data
from tests.named import arguments, model_settings
from tests.nn.test_layers import gradients
from tests.strategies import label_graphs
from tests.typed_graphs import small_hetero
from torch import Tensor

import legnn
from legnn.baselines import ARCHITECTURES
from legnn.baselines.label_highway import LabelHighway
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape
from legnn.nn.reference import dense_blocks

EXACT = {"rtol": 1e-10, "atol": 1e-10}
QUICK = {"architecture": "label_highway", "hidden": 8, "epochs": 6, "checkpoint_seconds": 0}


def make(classes: int, **options) -> LabelHighway:
    torch.manual_seed(0)
    options = {"hidden": 6, "layers": 3} | options
    model = ARCHITECTURES["label_highway"](model_settings(**options), DataShape(4, classes))
    assert isinstance(model, LabelHighway)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model.double().eval()


def union(graph: LabelGraph) -> Tensor:
    """`A` where it has an edge, 1 where two nodes show the same label and `A` has none, else 0."""
    A, Y, _ = dense_blocks(graph, torch.float64)
    return torch.where(A > 0, A, Y @ Y.T)


def dense(model: LabelHighway, x: Tensor, graph: LabelGraph) -> Tensor:
    U = union(graph)
    scale = U.sum(1).pow(-0.5).nan_to_num(posinf=0.0)
    U = scale[:, None] * U * scale
    x = U @ x @ model.project.weight.T
    for matrix, bias in zip(model.matrices, model.biases, strict=True):
        x = U @ (x + bias).relu() @ matrix.weight.T
    return x + model.last_bias


@given(graph=label_graphs(label_edges=False))
@settings(max_examples=25, deadline=None)
def test_the_model_equals_the_one_with_the_union_built(graph):
    model = make(graph.num_classes)
    x = torch.randn(graph.num_nodes, 4, dtype=torch.float64)
    ours, reference = model(x, graph), dense(model, x, graph)
    torch.testing.assert_close(ours, reference, **EXACT)
    wrt = list(model.parameters())
    torch.testing.assert_close(gradients((ours,), wrt), gradients((reference,), wrt), **EXACT)


def random_graph(nodes: int = 50) -> LabelGraph:
    edges = torch.cat([torch.randint(0, nodes, (2, 300)), torch.arange(nodes).repeat(2, 1)], 1)
    shown = torch.arange(0, nodes, 2)
    return LabelGraph(Adjacency.from_edge_index(edges, nodes), shown, shown % 3, 3)


def test_single_precision_agrees():
    graph, x = random_graph(), torch.randn(50, 4, dtype=torch.float64)
    model = make(3)
    reference = dense(model, x, graph)
    wrt = list(model.parameters())
    expected = gradients((reference,), wrt)
    single = make(3).float()
    ours = single(single.prepare(x.float()), graph)
    assert ours.shape == (50, 3)
    torch.testing.assert_close(ours.double(), reference, rtol=1e-3, atol=1e-3)
    for gradient, other in zip(gradients((ours,), list(single.parameters())), expected, strict=True):
        torch.testing.assert_close(gradient.double(), other, rtol=1e-2, atol=1e-2)


def test_a_highway_leads_to_the_same_class_and_no_further():
    graph = LabelGraph(
        Adjacency.from_edge_index(torch.arange(5).repeat(2, 1), 5),
        torch.tensor([0, 1, 2, 3]),
        torch.tensor([0, 1, 0, 1]),
        2,
    )
    model, x = make(2, layers=1), torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    reach = [torch.autograd.grad(model(x, graph)[i].sum(), x)[0].abs().sum(1) > 0 for i in range(5)]
    expected = [[0, 2], [1, 3], [0, 2], [1, 3], [4]]
    assert [row.nonzero().flatten().tolist() for row in reach] == expected


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
def test_every_parameter_is_trained(norm):
    model = make(3, norm=norm, dropout=0.2, input_dropout=0.2).train()
    model(torch.randn(50, 4, dtype=torch.float64), random_graph()).square().sum().backward()
    assert [name for name, parameter in model.named_parameters() if not parameter.grad.any()] == []
    assert len(model.biases) == (0 if norm == "batch" else 2)


def test_it_learns_and_takes_several_node_types_and_self_training():
    assert legnn.train(small_data(120), **arguments(**QUICK | {"epochs": 60, "lr": 0.02})).result.test["accuracy"] > 0.6
    legnn.train(
        small_hetero(),
        **arguments(**QUICK, as_train=True, pseudo_label_threshold=0.4, use_tc=False, precision="bf16"),
    )


def test_mini_batches_are_refused(tmp_path):
    with pytest.raises(InputError, match="LabelHighway trains on the whole graph at once"):
        legnn.train(small_data(), **arguments(**QUICK, batch=8, fanout="3"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
