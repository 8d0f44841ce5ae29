"""GCN-LPA: convolutions and label propagation over one matrix of trained edge weights."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from tests.graphs import small_data
from tests.named import arguments, model_settings
from tests.nn.test_layers import gradients
from tests.strategies import label_graphs
from tests.typed_graphs import small_hetero
from torch import Tensor

import legnn
from legnn.baselines import ARCHITECTURES, gcn_lpa
from legnn.baselines.gcn_lpa import GCNLPA
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape, ModelSettings
from legnn.training import FullBatch, Objective, Task

EXACT = {"rtol": 1e-10, "atol": 1e-10}
QUICK = {"architecture": "gcn_lpa", "hidden": 8, "epochs": 6, "checkpoint_seconds": 0}


def make(graph: LabelGraph, **options) -> GCNLPA:
    torch.manual_seed(0)
    options = {"hidden": 6, "layers": 3, "loss_weight": 2.5} | options
    data = DataShape(4, graph.num_classes, edges=graph.adjacency.num_edges)
    model = ARCHITECTURES["gcn_lpa"](model_settings(**options), data)
    assert isinstance(model, GCNLPA)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model.double().eval()


def trained_adjacency(model: GCNLPA, graph: LabelGraph) -> Tensor:
    """`A*`: row-normalized `exp(θ)` at the edges."""
    adjacency = graph.adjacency
    weight = model.theta.exp() if adjacency.weight is None else model.theta.exp() * adjacency.weight
    A = weight.new_zeros(graph.num_nodes, graph.num_nodes)
    A = A.index_put((adjacency.row.long(), adjacency.col.long()), weight, accumulate=True)
    total = A.sum(1, keepdim=True)
    return A / torch.where(total > 0, total, 1.0)


def dense(model: GCNLPA, x: Tensor, graph: LabelGraph) -> Tensor:
    A = trained_adjacency(model, graph)
    x = A @ x @ model.project.weight.T
    for matrix, bias in zip(model.matrices, model.biases, strict=True):
        x = A @ (x + bias).relu() @ matrix.weight.T
    return x + model.last_bias


def dense_propagation(model: GCNLPA, graph: LabelGraph) -> Tensor:
    """Probabilities after as many steps as layers, uniform where no label arrives."""
    A = trained_adjacency(model, graph)
    Y = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    Y[graph.shown, graph.y] = 1
    shows = torch.zeros(graph.num_nodes, 1, dtype=torch.float64).index_fill(0, graph.shown, 1.0)
    labels = Y
    for _ in range(3):
        labels = shows * Y + (1 - shows) * (A @ labels)
    total = labels.sum(1, keepdim=True)
    return torch.where(total > 0, labels / torch.where(total > 0, total, 1.0), 1 / graph.num_classes)


@given(graph=label_graphs(label_edges=False))
@settings(max_examples=15, deadline=None)
def test_both_predictions_equal_the_dense_equations(graph):
    model = make(graph)
    x = torch.randn(graph.num_nodes, 4, dtype=torch.float64)
    ours, reference = model(x, graph), dense(model, x, graph)
    torch.testing.assert_close(ours, reference, **EXACT)
    wrt = list(model.parameters())
    torch.testing.assert_close(gradients((ours,), wrt), gradients((reference,), wrt), **EXACT)

    weight, logits = model.auxiliary(x, graph)
    assert weight == 2.5
    p = dense_propagation(model, graph)
    torch.testing.assert_close(logits.exp(), p, **EXACT)
    found, expected = (gradients((one,), [model.theta]) for one in (logits.exp(), p))
    torch.testing.assert_close(found, expected, **EXACT)


def random_graph(nodes: int = 50) -> LabelGraph:
    edges = torch.cat([torch.randint(0, nodes, (2, 300)), torch.arange(nodes).repeat(2, 1)], 1)
    shown = torch.arange(0, nodes, 2)
    return LabelGraph(Adjacency.from_edge_index(edges, nodes), shown, shown % 3, 3)


@pytest.mark.parametrize("chunk", [1, 40, 10**6])
def test_edge_gradients_in_chunks_are_those_at_once(chunk, monkeypatch):
    monkeypatch.setattr(gcn_lpa, "CHUNK", chunk)
    adjacency = random_graph().adjacency
    weight = torch.rand(adjacency.num_edges, dtype=torch.float64, requires_grad=True)
    x = torch.randn(50, 7, dtype=torch.float64, requires_grad=True)
    A = torch.zeros(50, 50, dtype=torch.float64)
    A = A.index_put((adjacency.row.long(), adjacency.col.long()), weight, accumulate=True)
    found, expected = gcn_lpa.edge_product(adjacency, weight, x), A @ x
    torch.testing.assert_close(found, expected, **EXACT)
    torch.testing.assert_close(gradients((found,), [weight, x]), gradients((expected,), [weight, x]), **EXACT)


def test_single_precision_agrees():
    graph, x = random_graph(), torch.randn(50, 4, dtype=torch.float64)
    model = make(graph)
    both = (dense(model, x, graph), dense_propagation(model, graph))
    expected = gradients(both, list(model.parameters()))
    single = make(graph).float()
    ours = single(single.prepare(x.float()), graph), single.auxiliary(None, graph)[1].exp()
    results = (*ours, *gradients(ours, list(single.parameters())))
    for result, other in zip(results, (*both, *expected), strict=True):
        torch.testing.assert_close(result.double(), other, rtol=1e-2, atol=1e-2)


def test_a_step_has_the_loss_of_label_propagation_of_the_predicted_nodes_too():
    graph = random_graph()
    model = make(graph, loss_weight=3.0)
    nodes = torch.arange(50)
    task = Task(
        torch.randn(50, 4, dtype=torch.float64),
        LabelGraph.without_labels(graph.adjacency, 3),
        nodes % 3,
        nodes[:30],
        nodes[30:],
        nodes[:0],
        nodes[30:],
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    batching = FullBatch(model, task, Objective(), optimizer, torch.Generator(), dtype=torch.float64)
    batching.train_epoch(1)
    predicted, shown = Objective().select(task.train, torch.Generator())
    assert not set(predicted.tolist()) & set(shown.tolist())
    now, truth = task.show(shown), task.y[predicted]
    expected = torch.nn.functional.cross_entropy(dense(model, task.x, now)[predicted], truth)
    p = dense_propagation(model, now)[predicted].clamp(min=torch.finfo(torch.float64).tiny)
    expected = expected + 3.0 * torch.nn.functional.nll_loss(p.log(), truth)
    torch.testing.assert_close(model.theta.grad, torch.autograd.grad(expected, model.theta)[0], **EXACT)


def test_at_the_start_all_edges_of_a_node_weigh_the_same():
    graph = random_graph()
    model = ARCHITECTURES["gcn_lpa"](ModelSettings(), DataShape(4, 3, edges=graph.adjacency.num_edges))
    found = model.times(graph, torch.float32)(torch.eye(50))
    counts = torch.zeros(50, 50).index_put(
        (graph.adjacency.row.long(), graph.adjacency.col.long()), torch.ones(()), accumulate=True
    )
    torch.testing.assert_close(found, counts / counts.sum(1, keepdim=True))


def test_a_graph_with_other_edges_is_refused():
    graph = random_graph()
    model = make(graph)
    x = torch.randn(50, 4, dtype=torch.float64)
    model.train()(x, graph)
    model.eval()(x, graph)
    again = Adjacency.from_edge_index(graph.adjacency.edge_index, 50)
    model(x, replace(graph, adjacency=again))
    for edges in (graph.adjacency.edge_index.flip(0), graph.adjacency.edge_index[:, 1:]):
        with pytest.raises(InputError, match="a weight for each of the 350 edges it was trained on"):
            model(x, replace(graph, adjacency=Adjacency.from_edge_index(edges, 50)))


def test_a_run_predicts_its_own_graph_and_no_other(tmp_path):
    data = small_data(60)
    run = legnn.train(data, **arguments(**QUICK), out=tmp_path / "run")
    again = legnn.Run.open(tmp_path / "run").predict(data)
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)
    with pytest.raises(InputError, match="train on this graph, or train another architecture"):
        run.predict(small_data(60, seed=1))


def test_it_learns_and_takes_several_node_types_and_self_training():
    run = legnn.train(small_data(300), **arguments(**QUICK | {"epochs": 60, "lr": 0.02, "layers": 2, "hidden": 16}))
    assert run.result.test["accuracy"] > 0.6
    assert run.model.theta.abs().max() > 0.01
    legnn.train(
        small_hetero(),
        **arguments(**QUICK, as_train=True, pseudo_label_threshold=0.4, use_tc=False, precision="bf16"),
    )


def test_mini_batches_are_refused(tmp_path):
    with pytest.raises(InputError, match="GCNLPA trains on the whole graph at once"):
        legnn.train(small_data(), **arguments(**QUICK, batch=8, fanout="3"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
