"""The perceptron is its equations, and its mini-batches have no blocks."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.peers import features, graph_for, make
from tests.graph.test_sampling import KERNELS, sampled
from tests.graphs import small_data
from tests.named import named

import legnn
from legnn.config import fanouts_for


@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_it_is_its_equations(layers, norm):
    x = features()
    model = make("mlp", layers=layers, norm=norm)
    h = x
    matrices = [model.project, *model.matrices, *([] if model.classifier is None else [model.classifier])]
    assert len(matrices) == layers
    for k, linear in enumerate(matrices):
        h = h @ linear.weight.T + linear.bias
        if k + 1 < layers:
            one = model.acts[k].norm
            h = h if one is None else F.layer_norm(h, (8,), one.weight, one.bias)
            h = h.relu()
    found = model(model.prepare(x), graph_for("mlp"))
    torch.testing.assert_close(found, h, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", KERNELS)
def test_a_sample_without_layers_is_its_seeds(form):
    graph, seeds = graph_for("mlp"), torch.tensor([5, 2, 20])
    sample = sampled(form, graph, seeds, [], (1, 2))
    assert sample.nodes.tolist() == seeds.tolist()
    assert sample.blocks == []
    assert sample.num_edges == 0
    # nobody of the sample shows a label, for all of it are seeds
    assert sample.at_input.shown.tolist() == []
    assert sample.at_input.label_of.tolist() == [-1, -1, -1]
    again = sampled(form, graph, seeds, [1], (1, 2))
    assert again.nodes[:3].tolist() == seeds.tolist(), "the scratch memory was left as it was found"


def test_no_fanout_is_needed_where_no_neighbor_is_read():
    assert fanouts_for("15,10,5", 0) == []


@pytest.mark.parametrize("as_train", [False, True])
def test_it_learns_in_mini_batches(as_train):
    run = legnn.train(
        small_data(120), settings=named(architecture="mlp", batch=16, epochs=30, hidden=16, lr=0.02, as_train=as_train)
    )
    assert run.result.test["accuracy"] > 0.6
    assert run.predictions["id"].nunique() == 120
