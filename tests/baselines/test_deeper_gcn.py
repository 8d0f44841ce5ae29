"""DeeperGCN is its equations."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import NODES, features, graph_for, make, neighbors
from tests.graphs import small_data

import legnn


def normalize(norm, x):
    if norm is None:
        return x
    if isinstance(norm, torch.nn.BatchNorm1d):
        x = (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
        return x * norm.weight + norm.bias
    return F.layer_norm(x, x.shape[1:], norm.weight, norm.bias)


def aggregate(conv, h, graph):
    """`h_i + Σ_j softmax_j(t m_j) m_j`, node by node, and the two matrices."""
    message = h.relu() + 1e-7
    rows = []
    for i in range(NODES):
        mine = message[neighbors(graph, i)]
        rows.append(h[i] + (torch.softmax(conv.aggr_module.t * mine, 0) * mine).sum(0))
    first, *norm, _, _, second = conv.mlp
    hidden = normalize(norm[0] if norm else None, torch.stack(rows) @ first.weight.T).relu()
    return hidden @ second.weight.T


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("layers", [1, 3])
def test_it_is_its_equations(layers, norm):
    graph, x = graph_for("deeper_gcn"), features()
    model = make("deeper_gcn", layers=layers, norm=norm)
    h = x @ model.project.weight.T + model.project.bias
    for conv, act in zip(model.layers, model.acts, strict=False):
        torch.nn.init.uniform_(conv.aggr_module.t)
        h = h + aggregate(conv, normalize(act.norm, h).relu(), graph)
    h = normalize(model.acts[-1].norm, h).relu()
    expected = h @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(model.inputs(x), graph), expected, rtol=1e-10, atol=1e-10)


def test_its_temperatures_are_learned():
    model = make("deeper_gcn").train()
    model(model.inputs(features()), graph_for("deeper_gcn")).square().sum().backward()
    assert all(float(conv.aggr_module.t.grad.abs().sum()) > 0 for conv in model.layers)


def test_it_learns_in_mini_batches():
    options = {"epochs": 30, "hidden": 16, "lr": 0.02, "layers": 3, "fanout": "4", "norm": "layer"}
    run = legnn.train(small_data(120), architecture="deeper_gcn", batch=16, **options)
    assert run.result.test.accuracy > 0.6
