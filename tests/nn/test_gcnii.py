"""GCNII: the layer over a label graph, and the model of its paper where no labels are used."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.named import model_settings
from tests.nn.test_layers import gradients, inputs
from tests.nn.test_model import HIDDEN, USAGES, make, rich_graph
from tests.nn.test_model import IN as FEATURES
from tests.nn.test_sampled import check as check_sample
from tests.nn.test_sampled import graph_of
from tests.strategies import label_graphs
from torch import Tensor, nn
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from legnn.graph import LabelGraph
from legnn.nn.gcnii import GCNII
from legnn.nn.published import published_normalization
from legnn.nn.reference import dense_gcnii

CHANNELS = 5


def layer_of(**options) -> GCNII:
    torch.manual_seed(0)
    layer = GCNII(CHANNELS, **{"restart": 0.3, "beta": 0.4} | options).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize("normalize", ["joint", "relation"])
@given(graph=label_graphs(), restart=st.sampled_from([0.0, 0.1, 1.0]), beta=st.sampled_from([0.0, 0.5, 1.3]))
@settings(max_examples=12, deadline=None)
def test_the_layer_equals_the_dense_reference(normalize, graph, restart, beta):
    layer = layer_of(normalize=normalize, restart=restart, beta=beta)
    x, labels = inputs(graph)
    first = inputs(graph, seed=5)
    wrt = [x, labels, *first, *layer.parameters()]
    ours, reference = layer(x, labels, graph, None, first), dense_gcnii(layer, x, labels, graph, first)
    torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradients(ours, wrt), gradients(reference, wrt), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("absent_label", ["skip", "zero"])
@given(graph=label_graphs(), node_weight=st.sampled_from([0.25, 2.0]))
@settings(max_examples=10, deadline=None)
def test_a_weighted_mean_of_the_relations_equals_the_dense_reference(absent_label, graph, node_weight):
    layer = layer_of()
    weights = model_settings(node_weight=node_weight, absent_label=absent_label)
    layer.normalization = published_normalization(layer.normalization, weights)
    (x, labels), first = inputs(graph), inputs(graph, seed=5)
    reference = dense_gcnii(layer, x, labels, graph, first)
    torch.testing.assert_close(layer(x, labels, graph, None, first), reference, rtol=1e-10, atol=1e-10)


@given(graph=label_graphs(label_edges=False))
@settings(max_examples=10, deadline=None)
def test_without_labels_and_in_the_last_layer_nothing_but_the_nodes_is_computed(graph):
    full, last, vanilla = layer_of(), layer_of(update_labels=False), layer_of(enhanced=False)
    for other in (last, vanilla):
        other.load_state_dict({"node.weight": full.node.weight})
    (x, labels), first = inputs(graph), inputs(graph, seed=5)
    nodes, nothing = last(x, labels, graph, None, first)
    assert nothing is None
    torch.testing.assert_close(nodes, full(x, labels, graph, None, first)[0])
    hidden = graph.show(graph.shown[:0], graph.y[:0])
    alone = vanilla(x, None, graph, None, (first[0], None))[0]
    torch.testing.assert_close(alone, full(x, labels, hidden, None, first)[0])


def pyg_gcnii(model, x: Tensor, graph: LabelGraph) -> Tensor:
    """The model of the paper from PyG's layers."""
    edge_index, weight = gcn_norm(
        graph.adjacency.edge_index, None, graph.num_nodes, add_self_loops=False, dtype=x.dtype
    )
    state = start = (x @ model.encoder.project.weight.T).relu()
    for k, block in enumerate(model.layers, 1):
        convolution = GCN2Conv(HIDDEN, alpha=0.2, theta=0.7, layer=k, normalize=False).double()
        convolution.load_state_dict({"weight1": block.layer.node.weight.T})
        state = convolution(state, start, edge_index, weight).relu()
    return state @ model.classifier.weight.T + model.classifier.bias


def test_without_labels_it_is_pygs_gcnii():
    graph = rich_graph()
    model = make(3, "gcnii", "vanilla", layers=6, residual="none", teleport=0.2, identity_decay=0.7)
    x = torch.randn(graph.num_nodes, FEATURES, dtype=torch.float64)
    torch.testing.assert_close(model(x, graph), pyg_gcnii(model, x, graph), rtol=1e-10, atol=1e-10)
    assert [block.layer.beta for block in model.layers] == [math.log(0.7 / k + 1) for k in range(1, 7)]


@pytest.mark.parametrize("labels", ["vanilla", "enhanced"])
def test_every_layer_reads_the_undropped_input(labels):
    """With everything dropped before the first layer, the restart still brings the input."""
    graph = rich_graph()
    model = make(3, "gcnii", labels, layers=2, residual="none", teleport=1.0, dropout=1 - 1e-9).train()
    first = model.encode(torch.randn(15, FEATURES, dtype=torch.float64), graph)
    nodes, _ = model.layers[0].layer(*(None if one is None else 0 * one for one in first), graph, None, first)
    assert nodes.abs().max() > 0.1
    read = []
    model.layers[0].layer.register_forward_pre_hook(lambda module, given: read.append(given))
    model.stage(0, *first, graph, first)
    assert read[0][0].abs().max() == 0
    torch.testing.assert_close(read[0][4], first)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("labels", USAGES)
def test_every_parameter_is_trained(labels, norm):
    model = make(3, "gcnii", labels, norm=norm).train()
    model(torch.randn(15, FEATURES, dtype=torch.float64), rich_graph()).square().sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("residual", ["none", "identity", "linear"])
@pytest.mark.parametrize("labels", USAGES)
def test_a_sample_of_everything_is_the_whole_graph(labels, residual):
    check_sample(graph_of(weighted=False, label_edges=False), "gcnii", labels, residual=residual)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("normalize", ["relation", "joint"])
def test_so_it_is_with_edge_weights_and_edges_between_labels(normalize, dtype):
    graph = graph_of(weighted=True, label_edges=True)
    check_sample(graph, "gcnii", "enhanced", dtype, normalize=normalize, residual="none")
