"""A run is an object: it predicts and evaluates alike in memory and from its folder."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments

import legnn
from legnn.errors import InputError
from legnn.runs import Run, RunFolder
from legnn.runs.predictor import predict_with_probabilities
from legnn.training import EpochLog

QUICK = {"epochs": 4, "hidden": 8, "layers": 2, "own_label_folds": 3}
KINDS = [
    {"backbone": "gat", "as_train": True},
    {"labels": "vanilla"},
    {"labels": "concat", "postprocess": "correct_and_smooth"},
    {"architecture": "pyg_gcn"},
    {"architecture": "pyg_gcn", "postprocess": "correct_and_smooth"},
    {"architecture": "label_propagation"},
]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def runs(request, tmp_path_factory) -> tuple[Run, Run]:
    """The run as `train` returned it, and as its folder holds it."""
    out = tmp_path_factory.mktemp("runs") / "run"
    run = legnn.train(small_data(), **arguments(**QUICK, **request.param), out=out)
    return run, Run.open(out)


def test_it_predicts_its_own_graph_in_memory_and_from_its_folder(runs):
    trained, opened = runs
    for table in (trained.predict(), trained.predict(small_data()), opened.predict(small_data())):
        pd.testing.assert_frame_equal(table, trained.predictions, check_exact=True)


def test_a_folder_of_a_run_on_data_in_memory_needs_the_data(runs):
    with pytest.raises(InputError, match="trained on data in memory; give the same data again"):
        runs[1].predict()


def test_probabilities_are_those_of_the_predictions(runs):
    trained, opened = runs
    table = opened.predict_proba(small_data())
    pd.testing.assert_frame_equal(table, trained.predict_proba(), check_exact=True)
    assert table.index.tolist() == trained.predictions["id"].tolist()
    assert table.columns.tolist() == [0, 1, 2]
    assert np.allclose(table.sum(1), 1, atol=1e-5)
    assert table.idxmax(axis=1).tolist() == trained.predictions["prediction"].tolist()
    assert np.array_equal(table.max(axis=1).to_numpy(), trained.predictions["confidence"].to_numpy())


def test_predictions_hold_the_probability_of_every_class_where_asked(runs):
    trained, opened = runs
    table = predict_with_probabilities(opened, small_data(), device="cpu")
    base = ["id", "prediction", "confidence", "split"]
    assert table.columns.tolist() == [*base, "label", "p_0", "p_1", "p_2"]
    pd.testing.assert_frame_equal(table[base], trained.predictions, check_exact=True)
    assert np.array_equal(table[["p_0", "p_1", "p_2"]].to_numpy(), trained.predict_proba().to_numpy())


def test_the_top_classes_are_the_most_probable_in_order(runs):
    trained, _ = runs
    table, every = trained.predict(top=2), trained.predict_proba()
    assert table.columns.tolist()[-3:] == ["label", "prediction_2", "confidence_2"]
    assert np.array_equal(table["confidence_2"], np.sort(every.to_numpy(), axis=1)[:, -2])
    assert (table["prediction"] != table["prediction_2"]).all()
    assert trained.predict(top=9).columns.tolist()[-2:] == ["prediction_3", "confidence_3"], "there are three classes"


def test_labels_beside_predictions_are_the_true_ones_where_known(runs):
    labels = runs[0].predict(top=1)["label"].tolist()
    assert labels == [None if c < 0 else c for c in small_data().y.tolist()]


def test_columns_that_cannot_be_are_refused(runs):
    with pytest.raises(InputError, match="top must be at least 1, got 0"):
        runs[0].predict(top=0)


def test_it_evaluates_to_its_result(runs):
    trained, opened = runs
    for scores in (trained.evaluate(), opened.evaluate(small_data())):
        assert (scores.val, scores.test) == (trained.result.val, trained.result.test)
        assert scores.train_masked == trained.result.train_masked
    assert opened.result == trained.result


def test_it_evaluates_another_graph_by_the_labels_there(runs):
    data = small_data()
    right = runs[0].evaluate(data).test["accuracy"]
    predicted = torch.tensor(runs[0].predictions["prediction"].tolist())
    data.y[data.test_mask] = predicted[data.test_mask]
    assert runs[1].evaluate(data).test["accuracy"] == 1.0 >= right


def test_predicting_leaves_the_model_where_it_was(runs):
    model = runs[0].model
    before = {name: (value.device, value.data_ptr(), value.clone()) for name, value in model.state_dict().items()}
    runs[0].predict(small_data(), device="cpu")
    for name, value in model.state_dict().items():
        device, place, kept = before[name]
        assert (value.device, value.data_ptr()) == (device, place)
        assert torch.equal(value, kept)


def test_a_run_without_a_folder_predicts_its_graph_and_others():
    run = legnn.train(small_data(), **arguments(**QUICK))
    assert run.folder is None
    for table in (run.predict(), run.predict(small_data())):
        pd.testing.assert_frame_equal(table, run.predictions, check_exact=True)
    with pytest.raises(InputError, match="has 4 features and the run was trained on 5"):
        run.predict(small_data(channels=4))


def test_a_split_without_nodes_has_no_scores(runs):
    data = small_data()
    data.y[data.test_mask] = -1
    assert runs[1].evaluate(data).test is None


def test_a_run_is_shown_as_one_short_paragraph(runs):
    opened = runs[1]
    for run in runs:
        assert "\n" not in repr(run)
        assert len(repr(run)) < 300
        assert " on small (40 nodes, 3 classes); test accuracy 0." in repr(run)
    assert repr(opened).endswith(f"stored in {opened.folder}.")
    assert repr(legnn.train(small_data(), **arguments(**QUICK))).endswith("; in memory.")


def test_lines_of_epochs_are_the_same_however_many_are_written_at_once(tmp_path):
    logs: list[EpochLog] = []
    legnn.train(small_data(), **arguments(**QUICK, as_train=True), on_epoch=logs.append)
    folder = RunFolder(tmp_path)
    folder.append(logs[:1])
    folder.append([])
    folder.append(logs[1:])
    lines = "".join(json.dumps(asdict(log)) + "\n" for log in logs)
    assert (tmp_path / "metrics.jsonl").read_text() == lines
