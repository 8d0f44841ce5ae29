"""Predictions computed again with a part of their input removed."""

import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments

import legnn
from legnn.report.explanation import Removal, Rerun, without_edges

QUICK = {"epochs": 2, "hidden": 8, "preset": "simple", "device": "cpu", "dropout": 0.0}


def trained(data=None, **settings):
    data = small_data(nodes=60) if data is None else data
    return legnn.train(data, **arguments(**{**QUICK, **settings}))


@pytest.mark.parametrize(
    "settings",
    [
        {"backbone": "gcn", "labels": "enhanced"},
        {"architecture": "mlp"},
        {"labels": "enhanced", "label_features": "class-mean"},
        {"postprocess": "correct_and_smooth"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_an_edge_that_is_not_there_changes_no_prediction(settings):
    run = trained(**settings)
    node = int(run.graph.test_mask.nonzero()[0])
    row, col = run.graph.adjacency.row, run.graph.adjacency.col
    stranger = next(k for k in range(run.graph.num_nodes) if k not in col[row == node] and k != node)
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        p = Rerun(layer_wise, inference, node)(Removal("edge", stranger))
        torch.testing.assert_close(p, inference.predict_proba()[node])


def test_a_removed_label_is_that_of_a_graph_where_the_node_has_none():
    run = trained(backbone="gcn", labels="enhanced")
    node, neighbor = int(run.graph.test_mask.nonzero()[0]), int(run.graph.train_mask.nonzero()[0])
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        without_label = Rerun(layer_wise, inference, node)(Removal("label", neighbor))
    data = small_data(nodes=60)
    data.y[neighbor], data.train_mask[neighbor] = -1, False
    torch.testing.assert_close(without_label, run.predict_graph(legnn.load(data))[node])


def test_a_training_node_never_sees_its_own_label():
    run = trained(backbone="gcn", labels="enhanced")
    with run.inference(run.graph, device="cpu") as (layer_wise, inference):
        for node in run.graph.train_mask.nonzero().flatten().tolist():
            assert node not in Rerun(layer_wise, inference, node).shown


def test_edges_between_two_nodes_are_removed_in_both_directions_and_no_others():
    adjacency = trained().graph.adjacency
    row, col = adjacency.row.long(), adjacency.col.long()
    at = int((row != col).nonzero()[3])
    first, second = int(row[at]), int(col[at])
    removed = ((row == first) & (col == second)) | ((row == second) & (col == first))
    rest = without_edges(adjacency, first, second)
    assert rest.row.tolist() == row[~removed].tolist()
    assert rest.col.tolist() == col[~removed].tolist()
