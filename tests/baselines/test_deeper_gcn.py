"""DeeperGCN is its equations, and its layer is PyG's `GENConv`."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import NODES, features, graph_for, make, neighbors, settings_of
from tests.graphs import small_data
from tests.named import arguments
from torch_geometric.nn import GENConv

import legnn
from legnn.baselines.deeper_gcn import GENLayer
from legnn.nn import DataShape


def normalize(norm, x):
    if norm is None:
        return x
    if isinstance(norm, torch.nn.BatchNorm1d):
        x = (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
        return x * norm.weight + norm.bias
    return F.layer_norm(x, x.shape[1:], norm.weight, norm.bias)


def layer_by_node(layer, h, graph):
    message, rows = h + 1e-7, []
    for i in range(NODES):
        mine = message[neighbors(graph, i)]
        rows.append(h[i] + (torch.softmax(layer.temperature * mine, 0) * mine).sum(0))
    return normalize(layer.norm, torch.stack(rows) @ layer.expand.weight.T).relu() @ layer.contract.weight.T


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("layers", [1, 3])
def test_it_is_its_equations(layers, norm):
    graph, x = graph_for("deeper_gcn"), features()
    model = make("deeper_gcn", layers=layers, norm=norm)
    h = x @ model.project.weight.T + model.project.bias
    for layer, act in zip(model.layers, model.acts, strict=False):
        torch.nn.init.uniform_(layer.temperature)
        h = h + layer_by_node(layer, normalize(act.norm, h).relu(), graph)
    h = normalize(model.acts[-1].norm, h).relu()
    expected = h @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(model.prepare(x), graph), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("temperature", [1.0, 3.5, -0.5])
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
def test_its_layer_is_pygs_with_the_same_gradients(norm, temperature):
    # without self-loops, a node has no neighbors at all
    graph = graph_for("deeper_gcn", loops=False)
    ours = GENLayer(settings_of("deeper_gcn", norm=norm), DataShape(8, 3)).double()
    theirs = GENConv(8, 8, learn_t=True, t=temperature, norm=None if norm == "none" else norm).double()
    torch.nn.init.constant_(ours.temperature, temperature)
    theirs.mlp[0].weight.data, theirs.mlp[-1].weight.data = ours.expand.weight.data, ours.contract.weight.data
    found = []
    for forward, own in (
        (lambda x: ours(x, graph), ours.temperature),
        (lambda x: theirs(x, graph.adjacency.edge_index), theirs.aggr_module.t),
    ):
        x = torch.randn(NODES, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64).relu()
        x.requires_grad_()
        out = forward(x)
        out.square().sum().backward()
        # at zero PyG's ReLU of the message has no gradient; here the activation before it has none
        found.append([out.detach(), x.grad * (x > 0), own.grad.flatten()])
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-10)


def test_weights_that_would_vanish_beside_those_of_other_nodes_are_still_a_mean():
    graph = graph_for("deeper_gcn")
    layer = GENLayer(settings_of("deeper_gcn"), DataShape(8, 3))
    x = torch.rand(NODES, 8)
    x[0] = 1e4
    found = layer.aggregate(x, graph)
    assert found.isfinite().all()
    far = next(i for i in range(NODES) if 0 not in neighbors(graph, i))
    mine = x[neighbors(graph, far)]
    assert (found[far] >= mine.amin(0)).all()
    assert (found[far] <= mine.amax(0) + 1e-5).all()


def test_it_learns_in_mini_batches():
    options = {"epochs": 30, "hidden": 16, "lr": 0.02, "layers": 3, "fanout": "4", "norm": "layer"}
    run = legnn.train(small_data(120), **arguments(**options, architecture="deeper_gcn", batch=16))
    assert run.result.test["accuracy"] > 0.6
