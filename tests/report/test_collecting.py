"""Data of a page, collected from runs."""

import base64
import json

import numpy as np
import pandas as pd
import pytest
from tests.graphs import small_data, table_folder
from tests.named import arguments, named
from tests.typed_graphs import small_hetero

import legnn
from legnn.io import write_predictions
from legnn.report.collecting import collect
from legnn.report.nodes import NodeTable
from legnn.report.payload import LEVELS, to_json
from legnn.report.suspicious import MOST_LABELS, NUMBERS

QUICK = {"epochs": 3, "hidden": 8, "preset": "simple", "device": "cpu"}


def numbers(packed, kind):
    return np.frombuffer(base64.b64decode(packed.base64), dtype=kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return table_folder(tmp_path_factory.mktemp("data") / "tables", small_data(nodes=90))


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    return legnn.train(folder, **arguments(**QUICK, as_train=True), out=tmp_path_factory.mktemp("runs") / "first")


@pytest.fixture(scope="module")
def content(run):
    return collect([run.folder])


def test_the_scores_are_those_of_the_run_and_of_evaluate(content, run):
    sections = content.runs[0].sections
    evaluation = run.evaluate()
    scores = {row.split: row.scores for row in sections["overview"].scores}
    assert {name: score.mean for name, score in scores["test"].items()} == run.result.test
    assert sections["classes"].scores == evaluation.classes
    assert sections["classes"].confusion.tolist() == evaluation.confusion
    assert sections["reliability"].ece == pytest.approx(evaluation.scores["ece"])
    assert sections["reliability"].brier == pytest.approx(evaluation.scores["brier"], abs=1e-6)


def test_the_nodes_are_those_of_the_predictions(content, run):
    nodes = content.runs[0].nodes
    assert nodes.ids.split("\n") == run.predictions["id"].astype(str).tolist()
    predicted = numbers(nodes.classes, "<u2").reshape(-1, nodes.top)[:, 0]
    assert [run.card.classes[c] for c in predicted] == run.predictions["prediction"].tolist()
    confidence = numbers(nodes.p, "<u2").reshape(-1, nodes.top)[:, 0] / LEVELS
    np.testing.assert_allclose(confidence, run.predictions["confidence"], atol=1e-4)


def test_curves_have_every_epoch(content):
    (curve,) = content.runs[0].sections["curves"]
    assert curve.values["epoch"] == [1, 2, 3]
    assert all(len(curve.values[name]) == 3 for name in ("loss", "training_confidence", "pseudo_labels"))
    assert len(curve.val["accuracy"]) == 3


def test_every_node_has_a_place_on_the_map(content):
    node_map = content.runs[0].sections["map"]
    rows, points = numbers(node_map.rows, "<u4"), numbers(node_map.points, "<f4").reshape(-1, 2)
    assert rows.tolist() == list(range(90))
    assert points.min() >= 0
    assert points.max() <= 1


def test_all_of_it_becomes_json(content):
    assert json.loads(to_json(content))["runs"][0]["classes"] == ["class 0", "class 1", "class 2"]


def test_nodes_to_explain_are_named_by_id(run):
    (payload,) = collect([run], nodes=["n3", "n4"]).runs
    assert [node.id for node in payload.sections["node"]] == ["n3", "n4"]
    with pytest.raises(legnn.InputError, match="there is no node 'n3000'"):
        collect([run], nodes=["n3000"])


def test_runs_side_by_side_say_in_which_settings_they_differ(folder, run, tmp_path):
    other = legnn.train(folder, **arguments(**{**QUICK, "hidden": 16}), out=tmp_path / "other")
    page = collect([run.folder, other.folder])
    assert [payload.name for payload in page.runs] == ["first", "other"]
    assert page.differing["model.hidden"] == ["8", "16"]
    assert page.differing["self_training.as_train"] == ["True", "False"]
    assert "model.backbone" not in page.differing


def checked_labels(run):
    """A table as `check_labels` returns it, of every node in reversed order."""
    predictions = run.predictions.iloc[::-1]
    numbers = dict.fromkeys(NUMBERS, 0.5)
    return pd.DataFrame({"id": predictions["id"], "label": "class 1", "suggested": "class 2", "split": "", **numbers})


@pytest.fixture(scope="module")
def large_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("large")
    tables = table_folder(place / "tables", small_data(nodes=MOST_LABELS + 50))
    return legnn.train(tables, **arguments(**QUICK), out=place / "run")


@pytest.mark.parametrize("suffix", [None, ".csv", ".parquet"])
def test_labels_that_look_wrong_are_the_first_of_the_table_in_its_order(large_run, tmp_path, suffix):
    run, table = large_run, checked_labels(large_run)
    if suffix is not None:
        write_predictions(tmp_path / f"labels{suffix}", table)
    (payload,) = collect([run], nodes=[], labels=table if suffix is None else tmp_path / f"labels{suffix}").runs
    labels, ids = payload.sections["labels"], payload.nodes.ids.split("\n")
    assert labels.total == len(table) > MOST_LABELS
    assert [row.id for row in labels.rows] == table["id"].head(MOST_LABELS).tolist()
    assert all(ids[row.row] == row.id for row in labels.rows)
    assert {(row.label, row.suggested, row.score, row.split) for row in labels.rows} == {(1, 2, 0.5, "")}


def test_a_table_of_other_labels_is_refused(run, tmp_path):
    table = checked_labels(run)
    for wrong, message in (
        (table.drop(columns="score"), "the table of labels has no column 'score'"),
        (table.assign(id="nobody"), "the run has no node 'nobody'"),
        (table.assign(suggested="class 7"), "the run has no class 'class 7'"),
        (table.assign(p_label="high"), "has text where numbers belong"),
        (tmp_path / "labels.txt", r"in a \.parquet or a \.csv file"),
        (tmp_path / "nowhere.csv", "nowhere.csv could not be read"),
    ):
        with pytest.raises(legnn.InputError, match=message):
            collect([run], nodes=[], labels=wrong)


def test_several_seeds_have_deviations_and_a_row_each(folder, tmp_path):
    summary = legnn.train_seeds(folder, **arguments(**QUICK), seeds=2, out=tmp_path / "seeds").summary
    (payload,) = collect([tmp_path / "seeds"]).runs
    assert payload.kind == "seeds"
    assert payload.sections["overview"].scores[0].scores == summary.test
    assert len(payload.sections["curves"]) == 2
    assert [row.name for row in payload.sections["overview"].leaderboard.rows] == ["seed-0", "seed-1"]


def test_a_model_without_representations_and_labels_has_a_map_of_its_probabilities(folder, tmp_path):
    run = legnn.train(folder, settings=named(architecture="label_propagation"), preset="simple", out=tmp_path / "run")
    (payload,) = collect([run]).runs
    assert "probabilities" in payload.sections["map"].words
    assert payload.sections["classes"].labels is None


def test_of_several_node_types_the_labeled_one_is_shown(tmp_path):
    run = legnn.train(small_hetero(), **arguments(**QUICK))
    (payload,) = collect([run]).runs
    assert payload.nodes.count == len(run.predictions)
    assert {neighbor.type for node in payload.sections["node"] for neighbor in node.neighbors} - {None}


def test_the_nodes_worth_a_look_are_sure_errors_unsure_nodes_and_a_sure_one_of_each_class(run):
    graph, p = run.probabilities()
    table = NodeTable(graph, p.double().numpy())
    chosen = table.choose(12)
    assert len(set(chosen.tolist())) == 12
    assert table.scored[chosen].all()
    wrong = table.scored & (table.predicted != table.y)
    assert table.confidence[chosen[0]] == table.confidence[wrong if wrong.any() else table.scored].max()
