"""Predictions from a finished run: its own graph again, the graph grown since, and graphs that do not fit."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data, table_folder
from tests.named import arguments

import legnn
from legnn.errors import InputError
from legnn.nn.features import SparseFeatures

QUICK = {"epochs": 5, "hidden": 8}
KNOWLEDGE = {
    "label_adjacency": torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0]]),
    "label_x": torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]),
}


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
def test_predicting_the_runs_own_graph_gives_its_predictions_exactly(tmp_path, labels):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK, labels=labels, seed=4), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(), run.predictions, check_exact=True)
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(tables), run.predictions, check_exact=True)


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_label_edges_and_label_features_are_used_in_prediction_too(tmp_path, backbone):
    data = small_data(**KNOWLEDGE)
    options = {**QUICK, "layers": 3, "backbone": backbone, "label_features": "given"}
    run = legnn.train(data, **arguments(**options), out=tmp_path / "run")
    assert run.settings.model.label_edges is True
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(data), run.predictions, check_exact=True)
    del data.label_adjacency, data.label_x
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(data), run.predictions, check_exact=True)


def test_edges_in_memory_are_prepared_as_the_runs_were(tmp_path):
    data = small_data()
    run = legnn.train(data, **arguments(**QUICK, undirected=False, self_loops=False), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(data), run.predictions, check_exact=True)


def test_word_counts_that_are_kept_sparse_give_the_runs_predictions_exactly(tmp_path):
    counts = (torch.rand(40, 60, generator=torch.Generator().manual_seed(0)) < 0.05).float()
    run = legnn.train(small_data(x=counts), **arguments(**QUICK), out=tmp_path / "run")
    assert isinstance(run.model.prepare(counts), SparseFeatures)
    again = legnn.Run.open(run.folder).predict(small_data(x=counts))
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)


def test_digits_by_its_name_gives_its_predictions_exactly(tmp_path):
    run = legnn.train("digits", **arguments(**QUICK), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(), run.predictions, check_exact=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run for each label usage, with the graph it was trained on."""
    place = tmp_path_factory.mktemp("finished")
    return {
        labels: legnn.train(
            small_data(), **arguments(**QUICK, labels=labels, backbone="gat", own_label_folds=3), out=place / labels
        ).folder
        for labels in ("vanilla", "concat", "addition", "enhanced")
    }


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@given(node=st.integers(0, 39), label=st.integers(0, 2))
@settings(max_examples=15, deadline=None)
def test_no_prediction_changes_with_the_nodes_own_label(finished, labels, node, label):
    data = small_data()
    before = legnn.Run.open(finished[labels]).predict(data)
    if data.y[node] >= 0:  # an unlabeled node has no label to change
        data.y[node] = label
    after = legnn.Run.open(finished[labels]).predict(data)
    pd.testing.assert_series_equal(before.loc[node], after.loc[node], check_exact=True)


def test_other_predictions_do_change_with_a_training_nodes_label(finished):
    data = small_data()
    node = int(data.train_mask.nonzero()[0])
    before = legnn.Run.open(finished["enhanced"]).predict(data)
    data.y[node] = (data.y[node] + 1) % 3
    after = legnn.Run.open(finished["enhanced"]).predict(data)
    assert not before["confidence"].equals(after["confidence"])
    assert before["confidence"][node] == after["confidence"][node]


@pytest.mark.parametrize("split", ["val", "test"])
def test_the_labels_of_validation_and_test_nodes_are_never_shown(finished, split):
    data = small_data()
    before = legnn.Run.open(finished["enhanced"]).predict(data)
    mask = data[f"{split}_mask"]
    data.y[mask] = (data.y[mask] + 1) % 3
    assert before.equals(legnn.Run.open(finished["enhanced"]).predict(data))


# --- a graph that has grown ------------------------------------------------------------------------------------------


def grow(folder, ids: list, labels: list[str], splits: list[str] | None = None) -> None:
    """Add nodes to a folder of tables, each joined to the first five nodes."""
    nodes = pd.read_csv(folder / "nodes.csv", dtype=str, keep_default_na=False)
    rows = pd.DataFrame({"id": ids, "label": labels}, dtype=str)
    if "split" in nodes:
        rows["split"] = splits or [""] * len(ids)
    for name in [column for column in nodes if column.startswith("f")]:
        rows[name] = np.linspace(-1, 1, len(ids)).astype(str)
    old = nodes["id"].tolist()[:5]
    pd.concat([nodes, rows]).to_csv(folder / "nodes.csv", index=False)
    edges = pd.read_csv(folder / "edges.csv", dtype=str)
    new = pd.DataFrame([(source, target) for source in map(str, ids) for target in old], columns=["source", "target"])
    pd.concat([edges, new]).to_csv(folder / "edges.csv", index=False)


@pytest.mark.parametrize("kind", ["ints", "strings"])
def test_a_grown_graph_is_predicted_whole_and_old_nodes_keep_their_split(tmp_path, kind):
    ids = [100 + i for i in range(40)] if kind == "ints" else [f"n{i}" for i in range(40)]
    new = [900, 901, 902] if kind == "ints" else ["x0", "x1", "x2"]
    tables = table_folder(tmp_path / "tables", small_data(), ids)
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    grow(tables, new, ["", "", ""])
    table = legnn.Run.open(run.folder).predict(tables)
    assert table["id"].tolist() == ids + new
    assert table["split"].tolist()[:40] == run.predictions["split"].tolist()
    assert table["split"].tolist()[40:] == ["", "", ""]
    assert set(table["prediction"]) <= {"class 0", "class 1", "class 2"}
    with pytest.raises(
        InputError, match=r"is a run on other data.*to predict the data as they are now, give them as `data`"
    ):
        legnn.Run.open(run.folder).predict()


def test_new_ids_of_another_kind_do_not_hide_the_old(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data(), [100 + i for i in range(40)])
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    grow(tables, ["new"], [""])
    table = legnn.Run.open(run.folder).predict(tables)
    assert table["split"].tolist()[:40] == run.predictions["split"].tolist()


def test_a_new_node_with_a_label_shows_it_unless_it_is_for_evaluation(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    grow(tables, ["a", "b", "c", "d"], ["class 0", "class 1", "class 2", ""], ["", "val", "test", ""])
    table = legnn.Run.open(run.folder).predict(tables)
    assert table["split"].tolist()[40:] == ["train", "val", "test", ""]

    def neighbors_with(label: str, row: int) -> list[float]:
        nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
        nodes.loc[row, "label"] = label
        nodes.to_csv(tables / "nodes.csv", index=False)
        return legnn.Run.open(run.folder).predict(tables)["confidence"].tolist()

    shown = neighbors_with("class 2", 40)
    assert shown[:5] != table["confidence"].tolist()[:5], "a label that is shown reaches the neighbors"
    assert shown[40] == table["confidence"][40], "and not the node itself"
    assert neighbors_with("class 0", 41) == shown, "a label that is kept for validation does not"


def test_a_graph_without_any_label_is_predicted(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    nodes = pd.read_csv(tables / "nodes.csv").drop(columns=["label", "split"])
    nodes.to_csv(tables / "nodes.csv", index=False)
    table = legnn.Run.open(run.folder).predict(tables)
    assert (table["split"] == "").all()
    assert len(table) == 40


def test_the_order_of_the_rows_does_not_matter(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK, labels="vanilla"), out=tmp_path / "run")
    nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    nodes.iloc[::-1].to_csv(tables / "nodes.csv", index=False)
    table = legnn.Run.open(run.folder).predict(tables).iloc[::-1].reset_index(drop=True)
    assert table["id"].tolist() == run.predictions["id"].tolist()
    assert table["prediction"].tolist() == run.predictions["prediction"].tolist()
    np.testing.assert_allclose(table["confidence"], run.predictions["confidence"], rtol=1e-4)


def test_labels_are_known_by_name_and_not_by_number(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    part = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    part["label"] = part["label"].where(part["label"] != "class 0", "")
    part.to_csv(tables / "nodes.csv", index=False)
    table = legnn.Run.open(run.folder).predict(tables)
    expected = [s if y > 0 or s == "" else "" for s, y in zip(run.predictions["split"], small_data().y, strict=True)]
    assert table["split"].tolist() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop(columns="f4"),
            r"nodes\.csv has no column 'f4', of which the run's features are made; add it",
        ),
        (lambda t: t.rename(columns={"f4": "g4", "f3": "g3"}), "has no column 'f3', 'f4', .* add them"),
        (lambda t: t.assign(f4="much"), r"line 2, column 'f4' has 'much' where .* \(40 such cells\)"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused(tmp_path, change, message):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    change(nodes).to_csv(tables / "nodes.csv", index=False)
    with pytest.raises(InputError, match=message):
        legnn.Run.open(run.folder).predict(tables)


def test_columns_in_another_order_and_with_others_give_the_same_probabilities(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    nodes[[*reversed(nodes.columns)]].assign(f9="1", note="new").to_csv(tables / "nodes.csv", index=False)
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(tables), run.predictions, check_exact=True)


def test_nodes_of_a_class_that_the_run_does_not_know_show_no_label_and_are_counted(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    nodes.loc[nodes.index[:2], "label"] = "class 9"
    nodes.to_csv(tables / "nodes.csv", index=False)
    found = legnn.Run.open(run.folder).predict(tables)
    nodes.loc[nodes.index[:2], "label"] = ""
    nodes.to_csv(tables / "nodes.csv", index=False)
    pd.testing.assert_frame_equal(found, legnn.Run.open(run.folder).predict(tables), check_exact=True)
    assert found["split"].tolist()[:2] == ["", ""]
    note = found.attrs["notes"][-1]
    assert str(note).startswith("2 nodes of tables are of a class that the run was not trained on ('class 9')")


def test_another_number_of_features_is_refused(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    with pytest.raises(InputError, match=r"has 4 features and .* was trained on 5"):
        legnn.Run.open(run.folder).predict(small_data(channels=4))


def test_new_texts_get_their_features_from_the_runs_vocabulary(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    nodes = nodes.drop(columns=[name for name in nodes if name.startswith("f")])
    words = ["apple pear tree", "steel iron iron", "river lake water"]
    nodes["about"] = [f"{words[i % 3]} w{i % 4}" for i in range(len(nodes))]
    nodes.to_csv(tables / "nodes.csv", index=False)
    run = legnn.train(tables, **arguments(**QUICK, text="about"), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(), run.predictions, check_exact=True)
    more = pd.DataFrame({"id": ["x"], "label": [""], "split": [""], "about": ["apple zebra unheard"]})
    pd.concat([nodes, more]).to_csv(tables / "nodes.csv", index=False)
    table = legnn.Run.open(run.folder).predict(tables)
    # the new node has no edge to the others: with the same features they are predicted as before
    pd.testing.assert_frame_equal(table.iloc[:40], run.predictions, check_exact=True)
    assert table["id"].tolist()[40] == "x"


def test_a_run_in_memory_is_predicted_on_the_same_data_again(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(small_data()), run.predictions, check_exact=True)
    with pytest.raises(InputError, match="was trained on data in memory"):
        legnn.Run.open(run.folder).predict()


def test_edges_between_classes_are_of_the_runs_own_graph_alone(tmp_path):
    data = small_data()
    options = {"cross_label_edges": 30, "cross_label_seed": 3}
    run = legnn.train(data, **arguments(**options, **QUICK), out=tmp_path / "run")
    assert run.card.edges == legnn.load(data, **options).num_edges
    plain = legnn.Run.open(run.folder).predict(data)
    pd.testing.assert_frame_equal(plain, legnn.Run.open(run.folder).predict(legnn.load(data)), check_exact=True)
    assert not plain.equals(run.predictions)
    asked = legnn.Run.open(run.folder).predict(legnn.load(data, **options))
    pd.testing.assert_frame_equal(asked, run.predictions, check_exact=True)


@pytest.mark.parametrize("options", [{}, {"cross_label_edges": 30}])
def test_a_run_on_features_of_the_graph_predicts_that_graph_alone(tmp_path, options):
    tables = table_folder(tmp_path / "tables", small_data())
    given = {"features": "spectral", "type_channels": 5, **options}
    run = legnn.train(tables, **arguments(**given, **QUICK), out=tmp_path / "run")
    assert run.card.computed_features == ["nodes"]
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(), run.predictions, check_exact=True)
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(tables), run.predictions, check_exact=True)
    other = table_folder(tmp_path / "other", small_data(seed=1))
    with pytest.raises(InputError, match="features of nodes were computed from the graph that the run was trained on"):
        legnn.Run.open(run.folder).predict(other)


def test_a_run_on_given_features_refuses_as_many_of_the_graph(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    computed = legnn.load(small_data(), features="spectral", type_channels=5)
    with pytest.raises(InputError, match="features of nodes in small were computed from its own graph"):
        legnn.Run.open(run.folder).predict(computed)


def test_a_run_on_features_of_the_graph_is_resumed(tmp_path):
    options = {"features": "spectral", "type_channels": 5, "cross_label_edges": 20, **QUICK}
    whole = legnn.train(small_data(), **arguments(**options), out=tmp_path / "whole")
    done: list = []
    with pytest.raises(legnn.Interrupted):
        legnn.train(
            small_data(),
            **arguments(**options),
            out=tmp_path / "cut",
            on_epoch=done.append,
            should_stop=lambda: len(done) > 1,
        )
    resumed = legnn.resume(tmp_path / "cut", small_data())
    pd.testing.assert_frame_equal(resumed.predictions, whole.predictions, check_exact=True)


def test_a_run_named_like_its_data_does_not_take_their_place(tmp_path, monkeypatch):
    table_folder(tmp_path / "data" / "mine", small_data())
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "runs")
    run = legnn.train("mine", out="mine", epochs=2, hidden=8, preset="simple")
    again = legnn.open("mine").predict()
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)
    assert legnn.train("mine", epochs=2, hidden=8, preset="simple").settings.data.source == "mine"
