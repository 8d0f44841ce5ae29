"""GaAN is its equations."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import NODES, features, graph_for, make, neighbors
from tests.graphs import small_data
from tests.named import arguments

import legnn


def linear(one, x):
    return x @ one.weight.T + one.bias


def gated_attention(layer, x, graph):
    """Node by node and head by head."""
    q, k, v = (linear(one, x).view(NODES, layer.heads, -1) for one in (layer.query, layer.key, layer.value))
    v, pooled = torch.where(v > 0, v, 0.1 * v), linear(layer.pool, x)
    rows = []
    for i in range(NODES):
        mine = neighbors(graph, i)
        largest = pooled[mine].amax(0) if mine else torch.zeros_like(pooled[0])
        mean = x[mine].mean(0) if mine else torch.zeros_like(x[0])
        gate = torch.sigmoid(linear(layer.gate, torch.cat([x[i], largest, mean])))
        heads = [
            gate[h] * (torch.softmax(k[mine, h] @ q[i, h], 0)[:, None] * v[mine, h]).sum(0) for h in range(layer.heads)
        ]
        rows.append(linear(layer.out, torch.cat([x[i], *heads])))
    return torch.stack(rows)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("heads", [1, 4])
def test_it_is_its_equations(heads, norm, loops):
    # without self-loops, a node has no neighbors at all
    graph, x = graph_for("gaan", loops=loops), features()
    assert loops or [] in [neighbors(graph, i) for i in range(NODES)]
    model = make("gaan", layers=2, heads=heads, norm=norm)
    h = linear(model.project, x)
    for layer, act in zip(model.layers, model.acts, strict=True):
        h = gated_attention(layer, h, graph)
        h = h if act.norm is None else F.layer_norm(h, (8,), act.norm.weight, act.norm.bias)
        h = h.relu()
    expected = linear(model.classifier, h)
    torch.testing.assert_close(model(model.prepare(x), graph), expected, rtol=1e-10, atol=1e-10)


def test_it_learns_in_mini_batches():
    options = {"epochs": 30, "hidden": 16, "lr": 0.02, "layers": 2, "fanout": "4"}
    run = legnn.train(small_data(120), **arguments(**options, architecture="gaan", batch=16))
    assert run.result.test["accuracy"] > 0.6
