"""APPNP and DAGNN: the steps over a label graph, and the models of their papers where no labels are used."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from tests.named import model_settings
from tests.nn.test_layers import gradients
from tests.nn.test_model import IN, USAGES, rich_graph
from tests.nn.test_sampled import NODES, SEEDS, graph_of
from tests.strategies import label_graphs
from torch import Tensor
from torch_geometric import nn as pyg

from legnn.baselines import ARCHITECTURES
from legnn.errors import InputError
from legnn.graph import LabelGraph, sample_label_graph
from legnn.nn import LEGNN, DataShape
from legnn.nn.message_passing import class_mean
from legnn.nn.propagated import Propagated
from legnn.nn.reference import dense_appnp, dense_dagnn
from legnn.training import LayerWise, Task

BACKBONES = ["appnp", "dagnn"]
DENSE = {"appnp": dense_appnp, "dagnn": dense_dagnn}
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def make(backbone: str, classes: int = 3, labels: str = "enhanced", **options) -> Propagated:
    torch.manual_seed(0)
    options = {"hidden": 8, "layers": 3, "hops": 4, "teleport": 0.2, "label_at_input": True} | options
    model = ARCHITECTURES["legnn"](
        model_settings(backbone=backbone, labels=labels, **options),
        DataShape(IN, classes, label_features=torch.randn(classes, 3)),
    )
    assert isinstance(model, Propagated)
    return model.double().eval()


def features(nodes: int) -> Tensor:
    return torch.randn(nodes, IN, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@pytest.mark.parametrize("backbone", BACKBONES)
@given(graph=label_graphs())
@settings(max_examples=12, deadline=None)
def test_the_model_equals_the_dense_reference(backbone, normalize, graph):
    model = make(backbone, graph.num_classes, normalize=normalize, norm="layer")
    x = features(graph.num_nodes)
    nodes, labels = model.encode(x, graph)
    start = nodes[:, : graph.num_classes], labels
    ours, reference = model(x, graph), DENSE[backbone](model, start, graph)
    torch.testing.assert_close(ours, reference, **EXACT)
    wrt = list(model.parameters())
    torch.testing.assert_close(gradients((ours,), wrt), gradients((reference,), wrt), **EXACT)


@pytest.mark.parametrize("absent_label", ["skip", "zero"])
@pytest.mark.parametrize("backbone", BACKBONES)
@given(graph=label_graphs(label_edges=False))
@settings(max_examples=10, deadline=None)
def test_so_it_does_with_a_weighted_mean_of_the_relations(backbone, absent_label, graph):
    model = make(backbone, graph.num_classes, node_weight=2.0, absent_label=absent_label)
    x = features(graph.num_nodes)
    nodes, labels = model.encode(x, graph)
    reference = DENSE[backbone](model, (nodes[:, : graph.num_classes], labels), graph)
    torch.testing.assert_close(model(x, graph), reference, **EXACT)


def perceptron(model: Propagated, x: Tensor) -> Tensor:
    """Three matrices, written out."""
    second, third = model.perceptron.matrices
    hidden = (x @ model.encoder.project.weight.T).relu()
    hidden = (hidden @ second.weight.T + second.bias).relu()
    return hidden @ third.weight.T + third.bias


def normalized(graph: LabelGraph) -> Tensor:
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    source, target = graph.adjacency.edge_index
    A.index_put_((target, source), torch.ones(len(source), dtype=torch.float64), accumulate=True)
    degree = A.sum(1).pow(-0.5)
    return degree[:, None] * A * degree


def test_without_labels_appnp_is_pygs():
    graph, model = rich_graph(), make("appnp", labels="vanilla", hops=6)
    x, A = features(graph.num_nodes), normalized(graph)
    propagation = pyg.APPNP(6, 0.2, normalize=False)
    edge = A.nonzero().T
    expected = propagation(perceptron(model, x), edge.flip(0), A[edge[0], edge[1]])
    torch.testing.assert_close(model(x, graph), expected, **EXACT)


def test_without_labels_dagnn_is_the_papers_equation():
    graph, model = rich_graph(), make("dagnn", labels="vanilla", hops=3)
    x, A = features(graph.num_nodes), normalized(graph)
    Z = perceptron(model, x)
    H = torch.stack([Z, A @ Z, A @ A @ Z, A @ A @ A @ Z], 1)  # [M, K + 1, C]
    S = torch.sigmoid(H @ model.gate.weight.T)
    torch.testing.assert_close(model(x, graph), (S * H).sum(1), **EXACT)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_it_is_no_layer_of_legnn(backbone):
    with pytest.raises(InputError, match=f"{backbone} has no layers; give a backbone from gcn, sage"):
        LEGNN(IN, 3, model_settings(backbone=backbone))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_one_layer_is_one_matrix(backbone):
    graph, model = rich_graph(), make(backbone, layers=1)
    assert model.encoder.project.weight.shape == (3, IN)
    assert list(model.perceptron.parameters()) == []
    assert model(features(15), graph).shape == (15, 3)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_parameter_is_trained(backbone, labels, norm):
    model = make(backbone, labels=labels, norm=norm, dropout=0.3).train()
    model(features(15), rich_graph()).square().sum().backward()
    assert [name for name, parameter in model.named_parameters() if not parameter.grad.any()] == []
    hidden, last = model.perceptron.matrices
    assert (hidden.bias is None) == (norm == "batch")
    assert last.bias is not None


@pytest.mark.parametrize("label_features", ["one-hot", "class-mean", "given"])
@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_sample_of_everything_and_layer_wise_inference_are_the_whole_graph(backbone, labels, label_features):
    graph = graph_of(weighted=True, label_edges=labels == "enhanced")
    model = make(backbone, graph.num_classes, labels, label_features=label_features)
    x = features(NODES)
    sample = sample_label_graph(graph, SEEDS, (None,) * 4, (12, 34))
    if model.uses_class_mean:
        sample = replace(sample, class_mean=class_mean(graph, x))
    whole, parts = model(model.prepare(x), graph), model(model.prepare_rows(x[sample.nodes]), sample)
    torch.testing.assert_close(parts, whole[SEEDS], **EXACT)
    wrt = list(model.parameters())
    torch.testing.assert_close(gradients((parts,), wrt), gradients((whole[SEEDS],), wrt), **EXACT)

    y = torch.zeros(NODES, dtype=torch.long).index_copy(0, graph.shown, graph.y)
    task = Task(x, graph.show(graph.shown[:0], graph.y[:0]), y, graph.shown, SEEDS, SEEDS[:0], SEEDS[:0])
    chunked = LayerWise(model, task, torch.device("cpu"), torch.float64, chunk_size=9)
    torch.testing.assert_close(
        chunked.logits(graph.shown, SEEDS, torch.Tensor.double), whole[SEEDS].detach(), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("backbone", BACKBONES)
def test_steps_are_in_single_precision_where_the_perceptron_is_not(backbone):
    model = make(backbone).float()
    x = features(15).float()
    nodes, labels = model.encode(model.prepare(x, torch.bfloat16), rich_graph())
    assert nodes.dtype == labels.dtype == torch.float32
    torch.testing.assert_close(
        model(model.prepare(x, torch.bfloat16), rich_graph()), model(x, rich_graph()), rtol=0.1, atol=0.1
    )
