"""JKNet is its equations, whether its layers are joined by a matrix or by a maximum."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import features, graph_for, make, normalized
from tests.graphs import small_data
from tests.named import arguments

import legnn


@pytest.mark.parametrize("jump", ["concat", "max"])
@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_its_equations(layers, jump, weighted):
    graph, x = graph_for("jknet", weighted=weighted), features()
    model, A = make("jknet", layers=layers, mode=jump), normalized(graph)
    torch.nn.init.normal_(model.bias)
    h, outputs = x, []
    for k, weight in enumerate([model.project.weight, *model.weights]):
        norm = model.acts[k].norm
        h = F.layer_norm(A @ h @ weight.T + model.bias[k], (8,), norm.weight, norm.bias).relu()
        outputs.append(h)
    joined = torch.cat(outputs, 1) if jump == "concat" else torch.stack(outputs).amax(0)
    expected = joined @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(model.prepare(x), graph), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("jump", ["concat", "max"])
def test_it_learns_in_mini_batches(jump):
    options = {"epochs": 30, "hidden": 16, "lr": 0.02, "layers": 3, "fanout": "4"}
    run = legnn.train(small_data(120), **arguments(**options, architecture="jknet", mode=jump, batch=16))
    assert run.result.test["accuracy"] > 0.6
