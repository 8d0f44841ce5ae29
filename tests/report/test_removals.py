"""A model computed again with something removed: only what the removal reaches, with the result of the whole graph."""

import pytest
import torch
from tests.graphs import small_data
from tests.typed_graphs import small_hetero

import legnn
from legnn.report.explanation import reruns
from legnn.report.reached_states import ReachedStates
from legnn.report.removals import Removal, WholeGraph, without_edges

QUICK = {"epochs": 2, "hidden": 8, "preset": "simple", "device": "cpu", "dropout": 0.0}


def trained(data=None, **settings):
    data = small_data(nodes=60) if data is None else data
    return legnn.train(data, **{**QUICK, **settings})


def removals_of(graph, node, shown):
    """Every removal around a node, its own features among them, and removals farther away."""
    begin, end = graph.adjacency.rowptr[node : node + 2].tolist()
    near = [one for one in graph.adjacency.col[begin:end].tolist() if one != node]
    found = [Removal("features", node)]
    for one in near:
        found += [Removal("edge", one), Removal("features", one)]
    return found + [Removal("label", one) for one in shown.tolist()[:6]]


@pytest.mark.parametrize(
    "settings",
    [
        {"backbone": "gcn", "labels": "enhanced", "layers": 2},
        {"backbone": "gcn", "labels": "enhanced", "layers": 3, "normalize": "joint"},
        {"backbone": "gat", "labels": "enhanced", "layers": 4},
        {"backbone": "sage", "labels": "enhanced", "layers": 3, "label_at_input": True},
        {"backbone": "gcn", "labels": "concat", "layers": 2},
        {"backbone": "sage", "labels": "addition", "layers": 2},
        {"backbone": "gat", "labels": "vanilla", "layers": 2},
        {"backbone": "gcnii", "labels": "enhanced", "layers": 4},
        {"architecture": "mlp"},
        {"architecture": "jknet", "layers": 3},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_what_a_removal_reaches_is_computed_as_in_the_whole_graph(settings):
    run = trained(**settings)
    graph = run.graph
    nodes = torch.cat([graph.test_mask.nonzero().flatten()[:2], graph.train_mask.nonzero().flatten()[:1]])
    with run.inference(graph, device="cpu") as (layer_wise, inference):
        assert ReachedStates.applies_to(layer_wise, inference)
        proba = inference.predict_proba()
        for own, rerun in reruns(layer_wise, inference, nodes):
            assert isinstance(rerun, ReachedStates)
            whole = WholeGraph(layer_wise, inference, rerun.shown)
            for node in own.tolist():
                torch.testing.assert_close(rerun(node, None), proba[node], atol=1e-5, rtol=1e-4)
                for removal in removals_of(graph, node, rerun.shown):
                    torch.testing.assert_close(rerun(node, removal), whole(node, removal), atol=1e-5, rtol=1e-4)
                # what was removed is back
                torch.testing.assert_close(rerun(node, None), proba[node], atol=1e-5, rtol=1e-4)


def test_removals_of_weighted_edges_and_label_edges_are_those_of_the_whole_graph():
    data = small_data(nodes=40)
    data.edge_weight = torch.rand(data.edge_index.size(1)) + 0.5
    data.label_adjacency = torch.ones(3, 3) - torch.eye(3)
    run = trained(data, backbone="gcn", labels="enhanced", layers=3, label_edges=True)
    node = int(run.graph.test_mask.nonzero()[0])
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        ((_, rerun),) = reruns(layer_wise, inference, torch.tensor([node]))
        whole = WholeGraph(layer_wise, inference, rerun.shown)
        for removal in removals_of(run.graph, node, rerun.shown):
            torch.testing.assert_close(rerun(node, removal), whole(node, removal), atol=1e-5, rtol=1e-4)


def test_several_node_types_are_computed_as_in_the_whole_graph():
    run = trained(small_hetero(), backbone="rgcn", labels="enhanced", layers=3)
    node = int(run.graph.test_mask.nonzero()[0])
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        ((_, rerun),) = reruns(layer_wise, inference, torch.tensor([node]))
        whole = WholeGraph(layer_wise, inference, rerun.shown)
        for removal in removals_of(run.graph, node, rerun.shown):
            torch.testing.assert_close(rerun(node, removal), whole(node, removal), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [{"labels": "enhanced", "label_features": "class-mean"}, {"postprocess": "correct_and_smooth"}],
    ids=["class mean", "smoothed"],
)
def test_what_reads_all_nodes_is_computed_over_the_whole_graph(settings):
    run = trained(**settings)
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        nodes = run.graph.test_mask.nonzero().flatten()[:1]
        ((_, rerun),) = reruns(layer_wise, inference, nodes)
        assert isinstance(rerun, WholeGraph)
        torch.testing.assert_close(rerun(int(nodes[0]), None), inference.predict_proba()[int(nodes[0])])


def test_a_training_node_never_sees_its_own_label():
    run = trained(backbone="gcn", labels="enhanced")
    train = run.graph.train_mask.nonzero().flatten()
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        for own, rerun in reruns(layer_wise, inference, train):
            assert not set(own.tolist()) & set(rerun.shown.tolist())


def test_edges_between_two_nodes_are_removed_in_both_directions_and_no_others():
    adjacency = trained().graph.adjacency
    row, col = adjacency.row.long(), adjacency.col.long()
    at = int((row != col).nonzero()[3])
    first, second = int(row[at]), int(col[at])
    gone = ((row == first) & (col == second)) | ((row == second) & (col == first))
    found = without_edges(adjacency, first, second)
    assert found.row.tolist() == row[~gone].tolist()
    assert found.col.tolist() == col[~gone].tolist()
