"""What `legnn evaluate` computes."""

import numpy as np
import pytest
from sklearn import metrics
from tests.graphs import small_data
from tests.named import arguments
from tests.typed_graphs import small_hetero

import legnn
from legnn.runs.evaluation import Evaluation, class_scores, confusion_matrix
from legnn.typed_json import read_json, write_json

QUICK = {"epochs": 3, "hidden": 8, "preset": "simple"}


@pytest.fixture(scope="module")
def run():
    return legnn.train(small_data(nodes=90), **arguments(**QUICK))


def test_confusion_and_scores_of_classes_are_those_of_scikit_learn():
    draw = np.random.default_rng(0)
    # class 4 has no nodes, class 5 is never predicted, and class 6 neither
    y, predicted = draw.choice([0, 1, 2, 3, 5], 200), draw.choice([0, 1, 2, 3, 4], 200)
    found = confusion_matrix(predicted, y, 7)
    np.testing.assert_array_equal(found, metrics.confusion_matrix(y, predicted, labels=range(7)))
    expected = metrics.precision_recall_fscore_support(y, predicted, labels=range(7), zero_division=0)
    scores = class_scores(found, list("abcdefg"))
    assert [one.name for one in scores] == list("abcdefg")
    for k, name in enumerate(("precision", "recall", "f1", "support")):
        np.testing.assert_allclose([getattr(one, name) for one in scores], expected[k])


def test_a_run_is_evaluated_on_its_test_nodes(run):
    found = run.evaluate()
    test = run.graph.test_mask.numpy()
    y, p = run.graph.y.numpy()[test], run.predict_proba().to_numpy()[test]
    assert (found.nodes, found.num_nodes) == ("test", len(y))
    np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(y, p.argmax(1)))
    assert found.scores == found.test
    assert (found.val, found.test) == (run.result.val, run.result.test)
    assert found.train_masked == run.result.train_masked
    assert found.notes == []


def test_without_a_test_split_all_labeled_nodes_but_training_nodes_are_taken(run):
    data = small_data(nodes=90)
    data.y[data.test_mask] = -1
    data.test_mask[:] = False
    found = run.evaluate(data)
    assert found.test is None
    assert (found.nodes, found.num_nodes) == ("labeled", int(data.val_mask.sum()))
    assert [*map(str, found.notes)] == [
        "there is no test split; classes and confusion are of 18 labeled nodes outside the training split."
    ]


def test_without_labels_there_is_nothing_to_measure(run):
    data = small_data(nodes=90)
    data.y[:] = -1
    found = run.evaluate(data)
    assert (found.val, found.test, found.scores, found.num_nodes) == (None, None, None, 0)


def test_a_split_without_nodes_of_a_class_is_noted(run):
    data = small_data(nodes=90)
    data.y[data.test_mask & (data.y == 1)] = -1
    assert [note.code for note in run.evaluate(data).notes] == ["missing-class"]


def test_other_test_labels_change_nothing_but_the_scores_of_the_test_split(run):
    data = small_data(nodes=90)
    data.y[data.test_mask] = (data.y[data.test_mask] + 1) % 3
    first, second = run.evaluate(small_data(nodes=90)), run.evaluate(data)
    assert first.val == second.val
    assert first.train_masked == second.train_masked
    # the same predictions, so the same columns
    np.testing.assert_array_equal(np.sum(first.confusion, 0), np.sum(second.confusion, 0))
    assert first.confusion != second.confusion


def test_several_node_types_are_evaluated_on_the_labeled_one():
    run = legnn.train(small_hetero(), **arguments(**QUICK))
    found = run.evaluate()
    assert found.num_nodes == int(run.graph.test_mask.sum())
    assert found.test == run.result.test


def test_an_evaluation_is_written_and_read_again(run, tmp_path):
    found = run.evaluate()
    write_json(tmp_path / "e.json", found)
    assert read_json(tmp_path / "e.json", Evaluation) == found
