"""A metric that is registered is in results, tables, on the page, in the progress, and can choose the best epoch."""

import json

import pytest
from tests.graphs import small_data

import legnn
from legnn.cli.display import show_result
from legnn.errors import InputError
from legnn.report.scores import scores_of
from legnn.report.sections import curve_of
from legnn.runs import RunFolder
from legnn.runs.progress import EpochProgress
from legnn.training import METRICS
from legnn.training.metrics import Metric

QUICK = {"epochs": 6, "hidden": 8, "lr": 0.05}


class ErrorRate(Metric):
    """The share of nodes that are predicted wrong."""

    name, title, larger_is_better = "error_rate", "error rate", False

    def __call__(self, predicted, y, num_classes):
        return (predicted != y).double().mean()


@pytest.fixture
def error_rate(monkeypatch):
    monkeypatch.setitem(METRICS, "error_rate", ErrorRate())


@pytest.mark.usefixtures("error_rate")
def test_a_registered_metric_is_in_results_tables_progress_and_on_the_page_and_chooses(tmp_path, capsys):
    logs = []
    run = legnn.train(small_data(), out=tmp_path / "run", choose_by="error_rate", on_epoch=logs.append, **QUICK)
    # it chooses: the smallest, as it declares
    assert run.result.best_epoch == min(logs, key=lambda log: (log.val["error_rate"], log.val_loss)).epoch
    # results
    stored = json.loads((tmp_path / "run" / "result.json").read_text())["test"]["error_rate"]
    assert stored == run.result.test["error_rate"] == pytest.approx(1 - run.result.test["accuracy"])
    # tables
    show_result(run.result, tmp_path / "run")
    assert "error rate" in (out := capsys.readouterr().out)
    assert f"{stored:.4f}" in out
    # progress
    with EpochProgress(plain_seconds=0) as progress:
        progress.epoch(logs[0])
    assert f"val error rate {logs[0].val['error_rate']:.4f}" in capsys.readouterr().err
    # the page
    assert {split.split: split.scores for split in scores_of(run)}["test"]["error_rate"].mean == stored
    assert curve_of(RunFolder(tmp_path / "run")).val["error_rate"] == [log.val["error_rate"] for log in logs]


@pytest.mark.usefixtures("error_rate")
def test_several_seeds_have_the_mean_of_a_registered_metric():
    summary = legnn.train_seeds(small_data(), seeds=2, **QUICK).summary
    assert summary.test["error_rate"].mean == pytest.approx(1 - summary.test["accuracy"].mean)


@pytest.mark.parametrize("name", ["roc", "majority_accuracy"])
def test_a_metric_that_is_not_registered_or_ignores_predictions_cannot_choose(tmp_path, name):
    with pytest.raises(InputError, match=rf"choose_by must be one of accuracy, .*, got '{name}' \(did you mean"):
        legnn.train(small_data(), out=tmp_path / "run", choose_by=name, **QUICK)
    assert not (tmp_path / "run").exists()


def test_a_metric_that_is_not_defined_for_the_validation_nodes_cannot_choose():
    data = small_data()
    data.val_mask &= data.y == 1
    with pytest.raises(InputError, match="roc_auc is not defined for these validation nodes"):
        legnn.train(data, choose_by="roc_auc", **QUICK)
