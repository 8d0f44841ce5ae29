"""Every kind of predictor has the same methods, in memory and opened from its folder."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.graphs import small_data, table_folder
from tests.named import arguments, named

import legnn
from legnn.errors import InputError
from legnn.runs import Ensemble, Member, write_ensemble
from legnn.runs.folder import folder_kind
from legnn.runs.run import Run
from legnn.sweep import SerialExecutor

QUICK = {"epochs": 3, "hidden": 8, "own_label_folds": 3, "preset": "simple", "device": "cpu"}
PLAIN = {"propagation_steps": 50, "propagation_alpha": 0.9}
KINDS = {"run": 1, "ensemble": 2, "seeds": 2, "cross_fit": 2}
"""How many members each kind has here."""


def train(kind: str, data: object, out: Path | None) -> legnn.Predictor:
    how = {"settings": named(**QUICK), "out": out}
    if kind == "run":
        return legnn.train(data, **how)
    if kind == "seeds":
        return legnn.train_seeds(data, seeds=2, **how)
    if kind == "cross_fit":
        return legnn.cross_fit(data, folds=2, **how)
    if out is None:
        runs = [legnn.train(data, **arguments(**QUICK, seed=seed)) for seed in (0, 1)]
        return Ensemble(runs, [0.7, 0.3], 1.5)
    for seed in (0, 1):
        legnn.train(data, **arguments(**QUICK, seed=seed), out=out / str(seed))
    members = [Member(folder=name, weight=weight, **PLAIN) for name, weight in {"0": 0.7, "1": 0.3}.items()]
    return write_ensemble(out, members, 1.5, seconds=0.0)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return table_folder(tmp_path_factory.mktemp("tables"), small_data())


@pytest.fixture(scope="module", params=KINDS)
def predictors(request, tables, tmp_path_factory):
    """In memory, as training returned it, opened, and resumed."""
    out = tmp_path_factory.mktemp("runs") / request.param
    trained = train(request.param, tables, out)
    memory = train(request.param, tables, None)
    return {"memory": memory, "trained": trained, "opened": legnn.open(out), "resumed": legnn.resume(out)}


@pytest.mark.parametrize("state", ["memory", "trained", "opened", "resumed"])
def test_every_kind_has_every_method(predictors, state, tables):
    predictor = predictors[state]
    assert isinstance(predictor, legnn.Predictor)
    assert len(predictor.members) == KINDS[predictor.kind]
    assert all(isinstance(member, Run) for member in predictor.members)
    assert sum(predictor.weights) == pytest.approx(1)
    table, p = predictor.predict(device="cpu"), predictor.predict_proba(device="cpu")
    assert table.columns.tolist() == ["id", "prediction", "confidence", "split"]
    assert p.idxmax(axis=1).tolist() == table["prediction"].tolist()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert predictor.predict(top=2).columns.tolist()[-3:] == ["label", "prediction_2", "confidence_2"]
    assert len(predictor.predict(tables)) == len(table)
    assert len(predictor.predict_proba(tables)) == len(table)
    scores = predictor.evaluate()
    assert scores.test["accuracy"] == pytest.approx(predictor.result.test["accuracy"])
    # of another graph, cross-fitted runs see all labels
    assert predictor.kind == "cross_fit" or scores.test == predictor.evaluate(tables).test
    assert np.sum(scores.confusion) == scores.num_nodes
    html = predictor._repr_html_()
    assert "macro-F1" in html
    assert predictor.title in repr(predictor)
    with pytest.raises(InputError, match="top must be at least 1"):
        predictor.predict(top=0)


def test_in_memory_and_in_its_folder_it_predicts_the_same(predictors):
    table = predictors["memory"].predict(device="cpu")
    for state in ("trained", "opened", "resumed"):
        pd.testing.assert_frame_equal(predictors[state].predict(device="cpu"), table, check_exact=True)
    assert predictors["memory"].folder is None
    assert folder_kind(predictors["opened"].folder) == predictors["opened"].kind


def test_cross_fitted_runs_predict_a_training_node_by_the_run_without_its_label(tmp_path, tables):
    fitted = train("cross_fit", tables, tmp_path / "runs")
    known = fitted.predictions.set_index("id")
    p = legnn.open(tmp_path / "runs").predict_proba().loc[known.index]
    expected = known[[f"p_{name}" for name in p.columns]]
    np.testing.assert_allclose(p.to_numpy(), expected.to_numpy(), atol=1e-6)
    assert fitted.result.train_masked["accuracy"] == pytest.approx(fitted.summary.train_cross_fitted["accuracy"])


@pytest.mark.slow
def test_a_search_gives_a_predictor_that_is_opened_and_continued(tmp_path, tables):
    out = tmp_path / "search"
    how = {"budget": 60, "only": ["label-propagation"], "executor": SerialExecutor(), "device": "cpu", "out": out}
    found = legnn.auto(tables, **how)
    for predictor in (found, legnn.open(out), legnn.resume(out)):
        assert isinstance(predictor, legnn.Predictor)
        assert predictor.predict_proba().idxmax(axis=1).tolist() == predictor.predict()["prediction"].tolist()
        assert predictor.evaluate().test == found.result.test
    # cut short before its ensemble was written
    (out / "ensemble.json").unlink()
    (out / "result.json").unlink()
    with pytest.raises(InputError, match="is a search that is not finished; continue it with `resume="):
        legnn.open(out)
    assert legnn.resume(out).result.test == found.result.test


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a run folder"):
        legnn.open(tmp_path)
    with pytest.raises(InputError, match="there is no run folder"):
        legnn.resume(tmp_path / "none")
