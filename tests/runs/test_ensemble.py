"""An ensemble: the weighted mean of its members, in a folder that is read like a run's."""

import json
import shutil
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data, table_folder
from tests.named import arguments
from tests.typed_graphs import small_hetero

import legnn
from legnn.errors import InputError
from legnn.notes import Note
from legnn.runs import Ensemble, Member, write_ensemble
from legnn.runs.averaging import apply_temperature
from legnn.runs.predictor import predict_with_probabilities

QUICK = {"epochs": 3, "hidden": 8, "own_label_folds": 3, "preset": "simple"}
PLAIN = {"postprocess": "none", "propagation_steps": 50, "propagation_alpha": 0.9}
SMOOTH = {"postprocess": "correct_and_smooth", "propagation_steps": 5, "propagation_alpha": 0.8}
MEMBERS = [
    Member(folder="runs/gcn", weight=0.5, **PLAIN),
    Member(folder="runs/gcn", weight=0.2, **SMOOTH),
    Member(folder="runs/mlp", weight=0.3, **PLAIN),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of tables, and an ensemble of two runs on it, one of them twice."""
    place = tmp_path_factory.mktemp("made")
    tables = table_folder(place / "tables", small_data())
    legnn.train(tables, **arguments(**QUICK), out=place / "auto" / "runs" / "gcn")
    legnn.train(tables, **arguments(**QUICK, architecture="mlp"), out=place / "auto" / "runs" / "mlp")
    write_ensemble(place / "auto", MEMBERS, 1.7, seconds=12.0, notes=[Note("own", "a note")])
    return place


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made / "auto", tmp_path / "auto")


def mean_by_hand(folder, data=None) -> pd.DataFrame:
    gcn, mlp = (legnn.Run.open(folder / "runs" / name) for name in ("gcn", "mlp"))
    smooth = gcn.with_postprocess("correct_and_smooth", steps=5, alpha=0.8)
    return 0.5 * gcn.predict_proba(data) + 0.2 * smooth.predict_proba(data) + 0.3 * mlp.predict_proba(data)


def test_an_ensemble_is_shown_as_one_short_paragraph_and_adds_columns_like_a_run(made):
    ensemble = legnn.open(made / "auto")
    assert repr(ensemble).startswith("ensemble of 3 members on tables (40 nodes, 3 classes); test accuracy 0.")
    assert len(repr(ensemble)) < 400
    table = predict_with_probabilities(ensemble, device="auto")
    found = table[[f"p_class {c}" for c in range(3)]].to_numpy()
    np.testing.assert_allclose(found, ensemble.predict_proba().to_numpy(), atol=1e-6)


def test_probabilities_are_the_tempered_weighted_mean_of_the_members(made):
    ensemble = legnn.open(made / "auto")
    expected = mean_by_hand(made / "auto") ** (1 / 1.7)
    expected = expected.div(expected.sum(axis=1), axis=0)
    found = ensemble.predict_proba()
    pd.testing.assert_frame_equal(found, expected, check_exact=False, atol=1e-6, rtol=0)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    table = ensemble.predict()
    assert table["prediction"].tolist() == expected.idxmax(axis=1).tolist()
    np.testing.assert_allclose(table["confidence"], expected.max(axis=1), atol=1e-6)


def test_the_folder_holds_the_predictions_and_scores_of_all_nodes(made):
    ensemble = legnn.open(made / "auto")
    assert isinstance(ensemble, Ensemble)
    pd.testing.assert_frame_equal(ensemble.predictions, ensemble.predict(), check_exact=True)
    result, scores = ensemble.result, ensemble.evaluate()
    assert (result.val, result.test, result.train_masked) == (scores.val, scores.test, scores.train_masked)
    assert result.notes[-1] == Note("own", "a note")
    assert result.seconds == 12.0
    alone = [legnn.Run.open(made / "auto" / "runs" / name).result for name in ("gcn", "mlp")]
    assert result.parameters == sum(one.parameters for one in alone), "a run that is two members is counted once"
    assert ensemble.card.classes == ["class 0", "class 1", "class 2"]


def test_members_of_one_run_share_its_model_and_the_graph_is_read_once(made):
    reads = []

    class NotesReads(legnn.Run):
        def load_graph(self, data=None):
            reads.append(data)
            return super().load_graph(data)

    ensemble = legnn.open(made / "auto")
    assert ensemble.members[0].model is ensemble.members[1].model
    runs = [NotesReads(**{one.name: getattr(run, one.name) for one in fields(run)}) for run in ensemble.members]
    found = replace(ensemble, members=runs).predict(made / "tables")
    assert reads == [made / "tables"]
    pd.testing.assert_frame_equal(found, ensemble.predict(made / "tables"))


@given(node=st.integers(0, 39), label=st.integers(0, 2))
@settings(max_examples=8, deadline=None)
def test_no_prediction_changes_with_the_nodes_own_label(made, node, label):
    ensemble, data = legnn.open(made / "auto"), small_data(node_id=[f"n{i}" for i in range(40)])
    data.class_names = ["class 0", "class 1", "class 2"]
    before = ensemble.predict_proba(data)
    if data.y[node] >= 0:  # an unlabeled node has no label to change
        data.y[node] = label
    after = ensemble.predict_proba(data)
    pd.testing.assert_series_equal(before.iloc[node], after.iloc[node], check_exact=True)


def test_other_predictions_do_change_with_a_training_nodes_label(made):
    ensemble, data = legnn.open(made / "auto"), small_data(node_id=[f"n{i}" for i in range(40)])
    data.class_names = ["class 0", "class 1", "class 2"]
    before = ensemble.predict(data)["confidence"]
    data.y[0] = (data.y[0] + 1) % 3
    assert not before.equals(ensemble.predict(data)["confidence"])


def test_permuted_test_labels_change_nothing_but_the_test_score(tmp_path):
    data = small_data()
    changed = data.clone()
    test = data.test_mask.nonzero().flatten()
    changed.y[test] = data.y[test.roll(1)]
    found = []
    for name, one in {"plain": data, "permuted": changed}.items():
        for labels in ("enhanced", "vanilla"):
            legnn.train(one, **arguments(**QUICK, labels=labels), out=tmp_path / name / labels)
        members = [Member(folder=labels, weight=0.5, **PLAIN) for labels in ("enhanced", "vanilla")]
        found.append(write_ensemble(tmp_path / name, members, 1.0, seconds=0.0, data=one))
    first, second = found
    pd.testing.assert_frame_equal(first.predictions, second.predictions, check_exact=True)
    assert first.weights == second.weights
    assert replace(first.result, test=None) == replace(second.result, test=None)
    assert first.result.test != second.result.test


def test_a_grown_graph_is_predicted_whole(made, tmp_path):
    tables = shutil.copytree(made / "tables", tmp_path / "tables")
    nodes, edges = (pd.read_csv(tables / f"{name}.csv", keep_default_na=False) for name in ("nodes", "edges"))
    new = nodes.iloc[:2].assign(id=["x0", "x1"], label="", split="")
    pd.concat([nodes, new]).to_csv(tables / "nodes.csv", index=False)
    more = pd.DataFrame({"source": ["x0", "x1"], "target": ["n1", "n2"]})
    pd.concat([edges, more]).to_csv(tables / "edges.csv", index=False)
    ensemble = legnn.open(made / "auto")
    table = ensemble.predict(tables)
    assert table["id"].tolist() == [f"n{i}" for i in range(40)] + ["x0", "x1"]
    assert table["split"].tolist() == [*ensemble.predictions["split"], "", ""]
    assert table["prediction"].tolist() == mean_by_hand(made / "auto", tables).idxmax(axis=1).tolist()


def test_an_ensemble_that_was_just_written_has_its_graph(tmp_path):
    legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "a")
    ensemble = write_ensemble(tmp_path, [Member(folder="a", weight=1.0, **PLAIN)], 1.0, seconds=0, data=small_data())
    pd.testing.assert_frame_equal(ensemble.predict(), ensemble.predictions, check_exact=True)
    with pytest.raises(InputError, match="was trained on data in memory"):
        legnn.open(tmp_path).predict()


def test_members_that_read_the_data_differently_are_joined_over_nodes_of_the_labeled_type(tmp_path):
    data = small_hetero()
    for name, options in {"a": {"self_loops": False, "backbone": "rgcn", "labels": "vanilla"}, "b": {}}.items():
        legnn.train(data, **arguments(**options, **QUICK), out=tmp_path / name)
    members = [Member(folder=name, weight=0.5, **PLAIN) for name in ("a", "b")]
    ensemble = write_ensemble(tmp_path, members, 1.0, seconds=0, data=data)
    assert ensemble.members[0].graph is not ensemble.members[1].graph
    expected = sum(0.5 * legnn.Run.open(tmp_path / name).predict_proba(data) for name in ("a", "b"))
    pd.testing.assert_frame_equal(legnn.open(tmp_path).predict_proba(data), expected, atol=1e-6, rtol=0)


def test_a_finished_folder_of_several_seeds_is_the_mean_of_its_runs(tmp_path):
    data = small_data()
    legnn.train_seeds(data, **arguments(**QUICK), seeds=2, out=tmp_path / "seeds")
    ensemble = legnn.open(tmp_path / "seeds")
    assert ensemble.weights == [0.5, 0.5]
    runs = [legnn.Run.open(tmp_path / "seeds" / f"seed-{k}") for k in (0, 1)]
    expected = sum(0.5 * run.predict_proba(data) for run in runs)
    pd.testing.assert_frame_equal(ensemble.predict_proba(data), expected, atol=1e-6, rtol=0)
    for name in ("seed-1/result.json", "summary.json"):
        (tmp_path / "seeds" / name).unlink()
    with pytest.raises(InputError, match="is not finished, 1 of 2 seeds are; continue it with `resume="):
        legnn.open(tmp_path / "seeds")


def test_the_scores_of_several_seeds_are_computed_from_the_data(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    legnn.train_seeds(tables, **arguments(**QUICK), seeds=2, out=tmp_path / "seeds")
    ensemble = legnn.open(tmp_path / "seeds")
    assert ensemble.result.val == ensemble.evaluate().val
    assert ensemble.result.epochs == sum(run.result.epochs for run in ensemble.members)
    assert len(ensemble.predictions) == 40


@given(st.integers(0, 10_000), st.floats(0.05, 20))
@settings(max_examples=30, deadline=None)
def test_temperature_keeps_the_order_of_the_classes(seed, temperature):
    p = torch.rand(20, 400, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    p /= p.sum(1, keepdim=True)
    found = apply_temperature(p, temperature)
    assert torch.equal(found.argmax(1), p.argmax(1))
    torch.testing.assert_close(found.sum(1), torch.ones(20, dtype=torch.double))
    confidence, before = found.amax(1), p.amax(1)
    assert ((confidence <= before + 1e-12) if temperature > 1 else (confidence >= before - 1e-12)).all()


def test_rows_of_zeros_stay_zeros():
    assert torch.equal(apply_temperature(torch.zeros(2, 3), 2.0), torch.zeros(2, 3))


# --- what cannot be opened -------------------------------------------------------------------------------------------


def test_a_missing_member_is_named(folder):
    shutil.rmtree(folder / "runs" / "mlp")
    with pytest.raises(InputError, match=r"there is no run folder .*mlp$"):
        legnn.open(folder)


def test_a_damaged_member_is_named(folder):
    weights = folder / "runs" / "gcn" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-3])
    with pytest.raises(InputError, match=r"weights\.safetensors is damaged"):
        legnn.open(folder)


def test_a_member_that_is_not_finished_is_named(folder):
    (folder / "runs" / "gcn" / "result.json").unlink()
    with pytest.raises(InputError, match="gcn is not finished"):
        legnn.open(folder)


def test_an_ensemble_without_a_result_is_not_finished(folder):
    (folder / "result.json").unlink()
    with pytest.raises(InputError, match=r"is not finished: it has ensemble\.json and no result\.json"):
        legnn.open(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
        ({"members": []}, "an ensemble has one or more members"),
        ({"extra": 1}, "has an unknown key 'extra'"),
    ],
)
def test_a_damaged_list_of_members_is_refused(folder, change, message):
    card = json.loads((folder / "ensemble.json").read_text())
    (folder / "ensemble.json").write_text(json.dumps({**card, **change}))
    with pytest.raises(InputError, match=f"ensemble.json is damaged .*{message}"):
        legnn.open(folder)


def test_weights_that_do_not_sum_to_one_are_refused(folder):
    members = [replace(member, weight=0.5) for member in MEMBERS]
    with pytest.raises(InputError, match=r"their sum is 1, got \[0.5, 0.5, 0.5\]"):
        write_ensemble(folder, members, 1.0, seconds=0)


def test_runs_on_other_splits_are_refused(tmp_path):
    data = small_data()
    legnn.train(data, **arguments(**QUICK), out=tmp_path / "a")
    data.val_mask, data.test_mask = data.test_mask, data.val_mask
    legnn.train(data, **arguments(**QUICK), out=tmp_path / "b")
    members = [Member(folder=name, weight=0.5, **PLAIN) for name in ("a", "b")]
    with pytest.raises(InputError, match=r"b was not trained on the nodes, classes and splits of .*a; an ensemble"):
        write_ensemble(tmp_path, members, 1.0, seconds=0, data=data)
    assert not (tmp_path / "ensemble.json").exists()


def test_an_ensemble_is_no_run_folder(folder):
    with pytest.raises(InputError, match=r"is an ensemble of runs; name one of the runs that its ensemble\.json lists"):
        legnn.Run.open(folder)


def test_another_folder_is_neither(tmp_path):
    with pytest.raises(InputError, match="there is no run folder"):
        legnn.open(tmp_path / "none")
    with pytest.raises(InputError, match=r"is not a run folder: it has no settings\.yaml"):
        legnn.open(tmp_path)
    with pytest.raises(InputError, match=r"is not an ensemble: it has no ensemble\.json"):
        Ensemble.open(tmp_path)
