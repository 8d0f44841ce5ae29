"""Whatever is computed stage by stage is the same in the whole graph, over samples of everything, and in chunks."""

import pytest
import torch
from tests.baselines.peers import (
    CLASSES,
    NODES,
    OTHERS,
    features,
    graph_for,
    is_staged,
    make,
    node_types,
    task_for,
)

from legnn.graph import sample_label_graph
from legnn.training import LayerWise

STAGED = [name for name in OTHERS if is_staged(name)]
SEEDS = torch.tensor([23, 3, 20, 0, 7])
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def outcome(model, inputs, graph, rows=slice(None)):
    """Logits and the gradients of all parameters."""
    model.zero_grad()
    logits = model(inputs, graph)[rows]
    logits.square().sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return logits.detach(), {name: gradient.clone() for name, gradient in gradients.items()}


OF_A_BATCH = ("r_gsn",)
"""Designs that take statistics of a batch in training, whatever the norm."""


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("name", STAGED)
def test_a_sample_of_everything_is_the_whole_graph(name, layers, weighted):
    graph, x, kind = graph_for(name, weighted=weighted), features(), node_types(name)
    # the seeds of a sample show no label
    graph = graph.hide(SEEDS)
    # norms by row: a batch of the seeds has other statistics than one of all nodes
    model = make(name, graph, layers=layers).train(name not in OF_A_BATCH)
    if weighted and not model.takes_weights:
        pytest.skip("it takes no edge weights, see below")
    sample = sample_label_graph(graph, SEEDS, [None] * model.num_stages, (12, 34))
    of_sample = None if kind is None else kind[sample.nodes]
    whole = outcome(model, model.prepare(x, None, kind), graph, SEEDS)
    part = outcome(model, model.prepare_rows(x[sample.nodes], None, of_sample), sample)
    torch.testing.assert_close(part, whole, **EXACT)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("name", STAGED)
def test_inference_in_chunks_is_that_of_the_whole_graph(name, norm):
    graph, x = graph_for(name), features().float()
    model, task = make(name, graph, norm=norm).float(), task_for(graph, x)
    nodes = torch.tensor([5, 21, 13, 2])
    with torch.no_grad():
        whole = model(model.prepare(x, None, task.node_type), task.show(task.train))
    assert whole.shape == (NODES, CLASSES)
    chunks = LayerWise(model, task, torch.device("cpu"), torch.float32, chunk_size=7)
    torch.testing.assert_close(chunks.logits(task.train, nodes), whole[nodes], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OTHERS)
def test_sparse_features_are_those_that_are_not(name):
    graph, x, kind = graph_for(name), features(0.15), node_types(name)
    model = make(name, graph)
    with torch.no_grad():
        logits = model(model.prepare(x, None, kind), graph)
        if is_staged(name):
            torch.testing.assert_close(model(model.prepare_rows(x, None, kind), graph), logits, **EXACT)
    assert logits.shape == (NODES, CLASSES)
    assert logits.isfinite().all()


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("name", OTHERS)
def test_features_in_bf16_give_logits_in_single_precision(name, norm):
    graph, x, kind = graph_for(name), features().float(), node_types(name)
    model = make(name, graph, norm=norm).float()
    with torch.no_grad():
        exact, coarse = (model(model.prepare(x, dtype, kind), graph) for dtype in (None, torch.bfloat16))
    assert coarse.dtype == torch.float32
    torch.testing.assert_close(coarse, exact, rtol=0.1, atol=0.1)
