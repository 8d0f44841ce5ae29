"""The analysis of runs: the numbers of its summary, and the files of each run."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib import image
from tests.graphs import small_data, table_folder
from tests.named import named

import legnn
from legnn.analysis import analyze
from legnn.analysis.calibration import expected_calibration_error
from legnn.analysis.clustering import cluster
from legnn.analysis.cost import REPEATS, inference_seconds
from legnn.analysis.smoothness import graph_difference, label_differences, relative_graph_difference
from legnn.errors import InputError

QUICK = {"epochs": 3, "hidden": 8, "own_label_folds": 3}
PICTURES = {"calibration.png", "curves.png", "tsne.png"}
TABLES = {"bands", "calibration", "label_differences"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    data = table_folder(place / "data", small_data(), names=["a", "b", "c"])
    legnn.train(data, settings=named(**QUICK, as_train=True, pseudo_label_threshold=0.3), out=place / "enhanced")
    legnn.train(data, settings=named(**QUICK, labels="vanilla"), out=place / "vanilla")
    legnn.train(data, settings=named(architecture="label_propagation"), out=place / "spread")
    legnn.train_seeds(data, settings=named(**QUICK), seeds=2, out=place / "seeds")
    return place


@pytest.fixture(scope="module")
def report(place):
    return analyze([place / name for name in ("enhanced", "vanilla", "spread")], place / "out", device="cpu")


def rows_of(report, run) -> pd.DataFrame:
    return report.summary[report.summary["run"] == run].set_index("nodes")


def test_the_summary_has_the_quantities_of_the_representations(place, report):
    run, rows = legnn.Run.open(place / "enhanced"), rows_of(report, "enhanced")
    found, known = run.representations(), run.representations().y >= 0
    test, hidden = known & (found.split == "test"), found.nodes_without_own_label
    for nodes, z, mask in (
        ("test", found.nodes, test),
        ("all, hidden", hidden, known),
        ("all, shown", found.nodes, known),
    ):
        row, own, y = rows.loc[nodes], z[mask], found.y[mask]
        assert row["GD"] == graph_difference(own, y, 3)
        assert row["relative GD"] == relative_graph_difference(own, y, 3)
        # no class has 500 nodes: all are clustered
        assert (row["NMI"], row["ARI"]) == pytest.approx(cluster(own, y))
        assert row["parameters"] == run.result.parameters
        assert row["inference s"] > 0
    assert rows.loc["all, shown", "GD"] != rows.loc["all, hidden", "GD"]


def test_calibration_is_of_predictions_that_hide_the_own_label(place, report):
    table, rows = legnn.Run.open(place / "enhanced").predictions, rows_of(report, "enhanced")
    truth = np.array(["a", "b", "c", None], dtype=object)[small_data().y.numpy()]
    correct, known = (table["prediction"] == truth).to_numpy(), small_data().y.numpy() >= 0
    confidence, test = table["confidence"].to_numpy(), (table["split"] == "test").to_numpy()
    assert rows.loc["test", "ECE"] == expected_calibration_error(confidence[test], correct[test])
    assert rows.loc["all, hidden", "ECE"] == expected_calibration_error(confidence[known], correct[known])
    assert np.isnan(rows.loc["all, shown", "ECE"])


def test_a_model_that_uses_no_labels_is_the_same_with_and_without_them(report):
    rows = rows_of(report, "vanilla")[["GD", "relative GD", "NMI", "ARI"]]
    assert rows.loc["all, hidden"].tolist() == rows.loc["all, shown"].tolist()
    assert "vanilla: labels are not nodes of the graph, so they have no similarity." in report.notes


def test_a_model_without_representations_has_the_rest(report):
    rows = rows_of(report, "spread")
    assert rows[["GD", "relative GD", "NMI", "ARI"]].isna().all(axis=None)
    assert rows.loc["test", "ECE"] >= 0
    assert "spread: LabelPropagation has no representations, so GD, NMI and ARI are left out." in report.notes


@pytest.mark.parametrize(
    ("run", "files"),
    [
        ("enhanced", {"label_similarity.csv", "label_similarity.png", "similar_labels", "pseudo_labels.csv"}),
        ("vanilla", set()),
        ("spread", None),
    ],
)
def test_each_run_has_its_tables_and_pictures(place, report, run, files):
    more = files or set()
    lacks = set() if files is not None else {"tsne.png", "label_differences"}
    names = (PICTURES | TABLES | more) - lacks
    expected = {name for one in names for name in ([one] if "." in one else [f"{one}.md", f"{one}.csv"])}
    folder = place / "out" / run
    assert {path.name for path in folder.iterdir()} == expected
    for picture in folder.glob("*.png"):
        assert len(np.unique(image.imread(picture)[..., 0])) > 5, f"{picture} is blank"
    # what is written can be read
    for table in folder.glob("*.csv"):
        assert len(pd.read_csv(table)) > 0


def test_the_tables_hold_what_was_computed(place, report):
    found, folder = legnn.Run.open(place / "enhanced").representations(), place / "out" / "enhanced"
    table = pd.read_csv(folder / "label_differences.csv")
    assert table["class"].tolist() == ["a", "b", "c"]
    known = found.y >= 0
    np.testing.assert_allclose(table["LD (all, shown)"], label_differences(found.nodes[known], found.y[known], 3))
    assert table["nodes (all, hidden)"].tolist() == np.bincount(found.y[known]).tolist()
    similarity = pd.read_csv(folder / "label_similarity.csv", index_col="class")
    unit = found.labels / np.linalg.norm(found.labels, axis=1, keepdims=True)
    np.testing.assert_allclose(similarity.to_numpy(), unit @ unit.T, atol=1e-6)
    course = pd.read_csv(folder / "pseudo_labels.csv")
    assert course["epoch"].tolist() == [1, 2, 3]
    assert pd.read_csv(place / "out" / "summary.csv")["run"].tolist() == report.summary["run"].tolist()


def test_seeds_are_runs_of_their_own_and_a_run_given_twice_counts_once(place, tmp_path):
    found = analyze([place / "seeds", place / "seeds" / "seed-1"], tmp_path / "out")
    assert found.summary["run"].drop_duplicates().tolist() == ["seed-0", "seed-1"]


def test_runs_of_the_same_name_have_those_of_their_folders(place, tmp_path):
    for parent in ("x", "y"):
        legnn.train(place / "data", settings=named(**QUICK), out=tmp_path / parent / "run")
    found = analyze([tmp_path / "x" / "run", tmp_path / "y" / "run"], tmp_path / "out")
    assert found.summary["run"].drop_duplicates().tolist() == ["x-run", "y-run"]


def test_a_class_without_test_nodes_is_left_out_and_said(tmp_path):
    data = small_data()
    data.test_mask &= data.y != 2
    legnn.train(table_folder(tmp_path / "data", data), settings=named(**QUICK), out=tmp_path / "run")
    found = analyze([tmp_path / "run"], tmp_path / "out")
    assert "run: GD leaves out 1 of 3 classes, which have no test nodes." in found.notes
    assert rows_of(found, "run")["GD"].notna().all()


def test_a_run_without_test_nodes_has_empty_cells(tmp_path):
    data = small_data()
    data.test_mask[:] = False
    legnn.train(table_folder(tmp_path / "data", data), settings=named(**QUICK), out=tmp_path / "run")
    rows = rows_of(analyze([tmp_path / "run"], tmp_path / "out"), "run")
    assert rows.loc["test", ["GD", "relative GD", "NMI", "ARI", "ECE"]].isna().all()
    assert rows.loc["all, shown", ["GD", "NMI"]].notna().all()


def test_a_run_on_data_in_memory_is_refused(tmp_path):
    legnn.train(small_data(), settings=named(**QUICK), out=tmp_path / "run")
    with pytest.raises(InputError, match="was trained on data in memory"):
        analyze([tmp_path / "run"], tmp_path / "out")


@pytest.mark.slow
def test_on_cora_a_trained_model_finds_the_classes(real_data, tmp_path):
    legnn.train("cora", preset="simple", out=tmp_path / "run", epochs=40)
    found = analyze([tmp_path / "run"], tmp_path / "out")
    rows = rows_of(found, "run")
    # random weights have an NMI of 0.10 and a relative GD of 0.93
    assert (rows["NMI"] > 0.3).all()
    assert (rows["relative GD"] < 0.8).all()
    assert "run: labeled nodes are clustered into 7 classes of 180 to 500 nodes." in found.notes
    bands = pd.read_csv(tmp_path / "out" / "run" / "calibration.csv")
    assert bands["nodes"].sum() == 1000


class CountedPasses:
    """A run that notes the forward passes of its inference."""

    def __init__(self, run: legnn.Run) -> None:
        self.run, self.passes, self.own_graph = run, [], run.own_graph

    @contextmanager
    def inference(self, graph, device):
        with self.run.inference(graph, device=device) as (layer_wise, inference):

            def logits(shown, nodes):
                self.passes.append((shown.tolist(), nodes.tolist()))
                return layer_wise.logits(shown, nodes)

            yield SimpleNamespace(logits=logits, device=layer_wise.device), inference


def test_what_is_timed_is_one_pass_over_all_nodes_with_all_training_labels(place):
    run = legnn.Run.open(place / "enhanced")
    run = replace(run, graph=run.own_graph())
    counted = CountedPasses(run)
    assert 0 < inference_seconds(counted, "cpu") < 60
    train = torch.nonzero(run.graph.train_mask).flatten().tolist()
    assert counted.passes == [(train, list(range(40)))] * (REPEATS + 1)
