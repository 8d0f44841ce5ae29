"""UniMP is its equations, and reads the labels that are shown."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import CLASSES, NODES, features, graph_for, make, neighbors
from tests.graphs import small_data
from tests.named import arguments, named

import legnn
from legnn.baselines import UniMP
from legnn.config import Settings
from legnn.datasets import load
from legnn.errors import InputError
from legnn.runs.resources import size_of


def layer(conv, h, graph):
    """A graph transformer layer with a gated residual, node by node."""

    def linear(one, x):
        return x @ one.weight.T + one.bias

    heads, d = conv.heads, conv.out_channels
    q, k, v = (linear(one, h).view(NODES, heads, d) for one in (conv.lin_query, conv.lin_key, conv.lin_value))
    message = torch.zeros(NODES, heads, d, dtype=torch.float64)
    for i in range(NODES):
        mine = neighbors(graph, i)
        for head in range(heads):
            score = torch.stack([q[i, head] @ k[j, head] for j in mine]) / d**0.5
            message[i, head] = torch.softmax(score, 0) @ v[mine, head]
    m = message.flatten(1) if conv.concat else message.mean(1)
    r = linear(conv.lin_skip, h)
    beta = torch.sigmoid(torch.cat([m, r, m - r], 1) @ conv.lin_beta.weight.T)
    return (1 - beta) * m + beta * r


@pytest.mark.parametrize("hidden", [4, 8])
@pytest.mark.parametrize("layers", [1, 3])
def test_it_is_its_equations(layers, hidden):
    graph, x = graph_for("unimp"), features()
    model = make("unimp", layers=layers, hidden=hidden)
    Y = torch.zeros(NODES, CLASSES, dtype=torch.float64)
    Y[graph.shown, graph.y] = 1
    h = x + Y @ model.label_rows
    for k, conv in enumerate(model.layers):
        h = layer(conv, h, graph)
        if k + 1 < layers:
            norm = model.acts[k].norm
            h = F.layer_norm(h, (hidden,), norm.weight, norm.bias).relu()
    assert h.shape == (NODES, CLASSES)
    torch.testing.assert_close(model(model.prepare(x), graph), h, rtol=1e-10, atol=1e-10)


def test_its_inputs_are_not_changed():
    model, x = make("unimp"), features()
    inputs = model.prepare(x)
    before = inputs.clone()
    model(inputs, graph_for("unimp"))
    assert torch.equal(inputs, before)


def test_edge_weights_are_refused_before_a_folder_is_made_and_in_prediction(tmp_path):
    data = small_data()
    weighted = small_data(edge_weight=torch.rand(data.edge_index.size(1)) + 0.5)
    with pytest.raises(InputError, match="UniMP takes no edge weights"):
        legnn.train(weighted, settings=named(architecture="unimp", epochs=1), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run = legnn.train(data, settings=named(architecture="unimp", epochs=1, hidden=8))
    with pytest.raises(InputError, match="UniMP takes no edge weights"):
        run.predict(weighted)


def test_the_memory_of_its_edges_is_planned_for():
    graph = load(small_data())
    settings = Settings().override(named(hidden=16, layers=3, heads=2))
    unimp, jknet = (
        size_of(graph, settings.override(named(architecture=name)).resolve(graph.facts()))
        for name in ("unimp", "jknet")
    )
    of_a_layer = UniMP.edge_matrices * graph.num_edges * 16 * 4
    assert unimp.training_bytes - jknet.training_bytes == 3 * of_a_layer
    assert unimp.inference_bytes - jknet.inference_bytes == of_a_layer


def test_it_learns_in_mini_batches():
    options = {"epochs": 30, "hidden": 16, "lr": 0.02, "layers": 2, "fanout": "4"}
    run = legnn.train(small_data(120), **arguments(**options, architecture="unimp", batch=16))
    assert run.result.test["accuracy"] > 0.6
