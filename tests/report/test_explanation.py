"""What a prediction rests on."""

import numpy as np
import pytest
from tests.graphs import small_data
from tests.named import arguments

import legnn
from legnn.report.explanation import MOST_EFFECTS, explain

QUICK = {"epochs": 3, "hidden": 8, "preset": "simple", "device": "cpu"}


@pytest.fixture(scope="module")
def run():
    return legnn.train(small_data(nodes=90), **arguments(**QUICK, labels="enhanced", backbone="gcn"))


def test_the_largest_changes_come_first_and_are_no_more_than_ten(run):
    nodes = run.graph.test_mask.nonzero().flatten().tolist()
    for one in explain(run, run.graph, nodes):
        sizes = [abs(effect.change) for effect in one.effects]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) == min(MOST_EFFECTS, one.num_removals)


def test_an_explanation_is_of_the_reported_prediction(run):
    nodes = [0, 1, *run.graph.test_mask.nonzero().flatten().tolist()[:3]]
    found = explain(run, run.graph, nodes)
    assert [one.node for one in found] == nodes
    expected = run.predict_proba().to_numpy()[nodes]
    np.testing.assert_allclose([one.p for one in found], expected, atol=1e-5)


def test_a_change_is_that_of_a_graph_without_the_edge(run):
    node = int(run.graph.test_mask.nonzero()[0])
    one = explain(run, run.graph, [node])[0]
    effect = next(effect for effect in one.effects if effect.removal.kind == "edge")
    data = small_data(nodes=90)
    ends = {node, effect.removal.node}
    keep = [set(pair) != ends for pair in data.edge_index.T.tolist()]
    data.edge_index = data.edge_index[:, keep]
    # the same nodes and splits, one edge less
    p = run.predict_proba(data).to_numpy()[node]
    assert p[one.p.argmax()] - one.p.max() == pytest.approx(effect.change, abs=1e-5)


def test_only_neighbors_that_show_a_label_have_one_to_remove(run):
    train = set(run.graph.train_mask.nonzero().flatten().tolist())
    for one in explain(run, run.graph, run.graph.test_mask.nonzero().flatten().tolist()):
        shown = {neighbor: shows for neighbor, shows in one.neighbors.items() if shows >= 0}
        assert set(shown) <= train
        assert all(run.graph.y[node] == label for node, label in shown.items())
        assert {effect.removal.node for effect in one.effects if effect.removal.kind == "label"} <= set(shown)


def test_a_model_that_reads_no_labels_has_none_to_remove():
    run = legnn.train(small_data(nodes=60), **arguments(**QUICK, labels="vanilla", backbone="gcn"))
    for one in explain(run, run.graph, run.graph.test_mask.nonzero().flatten().tolist()):
        assert all(shows < 0 for shows in one.neighbors.values())
        assert all(effect.removal.kind != "label" for effect in one.effects)


def test_an_ensemble_is_explained_by_the_mixture_of_its_members(tmp_path):
    legnn.train_seeds("digits", seeds=2, out=tmp_path / "seeds", epochs=2, hidden=8, preset="simple", device="cpu")
    ensemble = legnn.open(tmp_path / "seeds")
    graph, p = ensemble.probabilities()
    nodes = [0, 5]
    found = explain(ensemble, graph, nodes)
    np.testing.assert_allclose([one.p for one in found], p[nodes].numpy(), atol=1e-5)


def test_when_time_is_over_the_first_nodes_are_explained(run):
    nodes = run.graph.test_mask.nonzero().flatten().tolist()
    assert [one.node for one in explain(run, run.graph, nodes, seconds=0)] == nodes[:1]


def test_explaining_leaves_the_predictions_as_they_were(run):
    before = run.predict_proba()
    explain(run, run.graph, run.graph.test_mask.nonzero().flatten().tolist()[:4])
    assert before.equals(run.predict_proba())
