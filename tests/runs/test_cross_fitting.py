"""Cross-fitting: no training node is predicted by a model that has seen its label."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.graphs import small_data, table_folder
from tests.named import arguments, named

import legnn
from legnn.errors import InputError, Interrupted
from legnn.runs import CrossFit, RunFolder
from legnn.runs.folder import folder_kind
from legnn.runs.graphs import hide_fold, reload_graph
from legnn.sweep.cross_fitting import resume_cross_fit
from legnn.training import assign_folds

QUICK = {"epochs": 4, "hidden": 8}


def random_labels(nodes: int = 240, classes: int = 4):
    """Features that tell every node apart, and labels that nothing tells of."""
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    return small_data(nodes, classes, x=torch.randn(nodes, 64, generator=generator), y=y)


def test_on_random_labels_cross_fitting_is_at_chance_and_the_hidden_own_label_well_above():
    data = random_labels()
    how = {
        "labels": "vanilla",
        "epochs": 60,
        "patience": 60,
        "hidden": 32,
        "dropout": 0.0,
        "lr": 0.02,
        "ties": "latest",
    }
    fitted = legnn.cross_fit(data, **arguments(**how), folds=4).summary.train_cross_fitted["accuracy"]
    trained = legnn.train(data, **arguments(**how)).result.train_masked["accuracy"]
    chance, deviation = 0.25, (0.25 * 0.75 / int(data.train_mask.sum())) ** 0.5
    assert abs(fitted - chance) < 3 * deviation
    assert trained > chance + 5 * deviation


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"backbone": "gat", "labels": "enhanced", "as_train": True, "pseudo_label_threshold": 0.3},
        {"labels": "concat", "postprocess": "correct_and_smooth", "class_weights": "balanced"},
    ],
    ids=["recommended", "gat with AS-Train", "concat with Correct & Smooth"],
)
def test_a_nodes_label_never_changes_its_cross_fitted_prediction(how):
    data = small_data()
    before = legnn.cross_fit(data, **arguments(**QUICK, **how), folds=2).predictions
    others_moved = False
    for node in data.train_mask.nonzero().flatten().tolist()[:2]:
        y = data.y.clone()
        y[node] = (y[node] + 1) % 3
        after = legnn.cross_fit(small_data(y=y), **arguments(**QUICK, **how), folds=2).predictions
        columns = ["prediction", "confidence", "fold", "p_0", "p_1", "p_2"]
        mine = before["id"] == node
        assert before.loc[mine, columns].equals(after.loc[mine, columns])
        assert before.loc[mine, "label"].item() != after.loc[mine, "label"].item()
        others_moved |= not before.loc[~mine, columns].equals(after.loc[~mine, columns])
    assert others_moved, "the labels do reach the predictions of other folds"


def test_a_hidden_fold_has_no_labels_and_is_in_no_split():
    graph = legnn.load(small_data())
    fold = assign_folds(graph.node_id, 3)
    part = hide_fold(graph, 1, 3)
    held = graph.train_mask & (fold == 1)
    assert held.any()
    assert (part.y[held] == -1).all()
    assert torch.equal(part.y[~held], graph.y[~held])
    assert torch.equal(part.train_mask, graph.train_mask & ~held)
    assert len({graph.fingerprint(), part.fingerprint(), hide_fold(graph, 2, 3).fingerprint()}) == 3
    # of a prepared folder, whose fingerprint is stored
    stored = replace(graph, provenance=replace(graph.provenance, fingerprint="stored"))
    assert len({"stored", *(hide_fold(stored, k, 3).fingerprint() for k in range(3))}) == 4


def test_every_training_node_is_predicted_once_by_the_run_of_its_fold(tmp_path):
    data = table_folder(tmp_path / "tables", small_data())
    found = legnn.cross_fit(data, **arguments(**QUICK), folds=3, out=tmp_path / "runs")
    graph = legnn.load(data)
    table = found.predictions
    assert table["id"].tolist() == graph.node_id[graph.train_mask.numpy()].tolist()
    p = table[[f"p_{name}" for name in graph.class_names]].to_numpy()
    assert np.allclose(p.sum(1), 1, atol=1e-5)
    assert [graph.class_names[c] for c in p.argmax(1)] == table["prediction"].tolist()
    assert found.summary.train_cross_fitted["accuracy"] == pytest.approx((table["prediction"] == table["label"]).mean())
    for fold, rows in table.groupby("fold"):
        run = legnn.Run.open(tmp_path / "runs" / f"fold-{fold}")
        # the run knows by itself which labels it may not read
        assert not reload_graph(RunFolder(run.folder)).train_mask[np.isin(graph.node_id, rows["id"])].any()
        again = run.predict().set_index("id").loc[rows["id"]]
        assert again["prediction"].tolist() == rows["prediction"].tolist()
        assert np.allclose(again["confidence"], rows["confidence"], atol=1e-5)
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == [
        "cross_fit.json",
        "cross_fitted.parquet",
        "digests.json",
        "fold-0",
        "fold-1",
        "fold-2",
        "summary.json",
        "sweep.json",
    ]
    opened = CrossFit.open(tmp_path / "runs")
    assert opened.summary == found.summary
    assert opened.predictions.astype(object).equals(table.astype(object))


@pytest.mark.parametrize("epochs", [3, 12])
def test_an_interrupted_cross_fitting_continues_to_the_same_predictions(tmp_path, epochs):
    seen = []
    with pytest.raises(Interrupted) as stop:
        legnn.cross_fit(
            small_data(),
            **arguments(**QUICK),
            folds=3,
            out=tmp_path / "runs",
            on_event=seen.append,
            should_stop=lambda: len(seen) >= epochs,
        )
    assert stop.value.folder == tmp_path / "runs"
    with pytest.raises(InputError, match="not finished"):
        CrossFit.open(tmp_path / "runs")
    with pytest.raises(InputError, match="is a sweep on other data"):
        resume_cross_fit(tmp_path / "runs", small_data(seed=1))
    found = resume_cross_fit(tmp_path / "runs")
    assert found.predictions.equals(legnn.cross_fit(small_data(), **arguments(**QUICK), folds=3).predictions)
    assert resume_cross_fit(tmp_path / "runs").summary == found.summary


def test_what_cannot_be_cross_fitted_is_refused_before_a_folder_is_made(tmp_path):
    data = small_data(80)
    one_fold = data.train_mask & (assign_folds(np.arange(80), 3) == 0)
    for given, message in (
        ({"folds": 1}, "at least 2 folds, got 1"),
        ({"settings": named(**QUICK, cross_label_edges=5)}, "uses all labels to add edges"),
        ({"data": small_data(80, train_mask=one_fold)}, "are in one of 3 folds"),
    ):
        how = {"data": small_data(), "folds": 3, "settings": named(**QUICK), "out": tmp_path / "runs"} | given
        with pytest.raises(InputError, match=message):
            legnn.cross_fit(**how)
    assert list(tmp_path.iterdir()) == []


def test_classes_that_a_fold_hides_are_named():
    data = small_data()
    first = data.train_mask.nonzero()[0]
    y = torch.where(data.train_mask & (data.y == 2), 1, data.y)
    y[first] = 2
    found = legnn.cross_fit(small_data(y=y), **arguments(**QUICK), folds=3)
    assert any(note.code == "class-in-one-fold" for note in found.summary.notes)


def test_the_folder_says_what_it_is(tmp_path):
    legnn.cross_fit(small_data(), **arguments(**QUICK), folds=2, out=tmp_path / "runs")
    assert folder_kind(tmp_path / "runs") == "cross_fit"
    assert json.loads((tmp_path / "runs" / "cross_fit.json").read_text())["folds"] == 2
    with pytest.raises(InputError, match="holds a run for each fold; name one of them: fold-0, fold-1"):
        legnn.Run.open(tmp_path / "runs")
    with pytest.raises(InputError, match="holds a finished run"):
        legnn.cross_fit(small_data(), **arguments(**QUICK), folds=2, out=tmp_path / "runs")
