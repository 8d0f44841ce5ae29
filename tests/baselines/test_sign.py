"""SIGN is its equations, and its hops are computed once for a whole graph."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import features, graph_for, make, normalized
from tests.graphs import small_data
from tests.named import arguments, named

import legnn


@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("hops", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_its_equations(hops, norm, weighted):
    graph, x = graph_for("sign", weighted=weighted), features()
    model, A = make("sign", hops=hops, norm=norm), normalized(graph)
    assert len(model.branches) == hops + 1
    branches = []
    for k, branch in enumerate(model.branches):
        torch.nn.init.uniform_(branch.slope)
        h = torch.linalg.matrix_power(A, k) @ x @ branch.linear.weight.T + branch.linear.bias
        h = h if branch.norm is None else F.layer_norm(h, (8,), branch.norm.weight, branch.norm.bias)
        branches.append(torch.where(h > 0, h, branch.slope * h))
    expected = torch.cat(branches, 1) @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(model.prepare(x), graph), expected, rtol=1e-10, atol=1e-10)


def test_hops_are_computed_once_for_the_same_inputs():
    graph, model = graph_for("sign"), make("sign", hops=3)
    with torch.no_grad():
        # without the branch that reads the inputs themselves, the logits are those of the propagated features
        model.classifier.weight[:, : model.hidden] = 0
    inputs = model.prepare(features())
    first = model(inputs, graph)
    inputs.mul_(2)  # contents must not change; here they show whether they are read again
    assert torch.equal(model(inputs, graph), first)
    other_labels = graph.show(graph.shown[:1], graph.y[:1])
    assert torch.equal(model(inputs, other_labels), first), "another epoch shows other labels over the same adjacency"
    other = model(inputs.clone(), graph)
    assert not torch.equal(other, first)
    assert torch.equal(model(inputs.div_(2), graph), first)


def test_it_learns_in_mini_batches():
    options = {"epochs": 30, "hidden": 16, "lr": 0.02, "hops": 2, "fanout": "4"}
    run = legnn.train(small_data(120), **arguments(**options, architecture="sign", batch=16))
    assert run.result.test["accuracy"] > 0.6


def test_the_presets_give_a_fanout_for_each_hop():
    run = legnn.train(small_data(), settings=named(architecture="sign", hops=4, batch=8, epochs=1))
    assert run.settings.train.fanout == "15,10,5,5"
