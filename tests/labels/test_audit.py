"""An audit finds every kind of planted leak, and no leak where there is none."""

import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import torch
from tests.graphs import table_folder
from tests.labels.leaks import DATA_LEAKS, add_edges, alike_test_edges, clean_data, repeated_ids
from tests.named import arguments
from tests.typed_graphs import small_hetero
from typer.testing import CliRunner

import legnn
from legnn.cli import make_app
from legnn.data.splits import TRAIN
from legnn.labels.audit import rules
from legnn.labels.audit.findings import Finding
from legnn.training.task import Task

QUICK = {"epochs": 2, "hidden": 8, "device": "cpu", "labels": "enhanced", "backbone": "gcn", "own_label_folds": 3}


def train(data, **options) -> legnn.Run:
    return legnn.train(data, **arguments(**{**QUICK, **options}))


def audit(run, **options) -> dict[str, Finding]:
    found = legnn.audit(run, flips=30, device="cpu", **options)
    return {one.check: one for one in found.findings}


def failed(found: dict[str, Finding]) -> set[str]:
    return {name for name, one in found.items() if one.verdict == "failed"}


@pytest.fixture(scope="module")
def clean_run() -> legnn.Run:
    return train(clean_data())


def test_a_clean_run_passes_and_says_what_was_tried(clean_run):
    found = audit(clean_run, retrain=True)
    assert failed(found) == set()
    assert found["own label"].count == 30
    assert found["validation and test labels"].count == int(
        (clean_run.graph.y >= 0).sum() - clean_run.graph.train_mask.sum()
    )
    assert found["training and test labels"].verdict == "passed"
    # the proof says something: labels of others do move predictions
    assert not found["labels of others"].detail.startswith("0 ")
    assert all(one.method and one.detail for one in found.values())


@pytest.mark.parametrize(
    ("check", "spoil"),
    [pytest.param(check, spoil, id=spoil.__name__) for check, ways in DATA_LEAKS.items() for spoil in ways],
)
def test_a_leak_planted_in_the_data_is_found(check, spoil):
    assert check in failed(audit(train(spoil(clean_data()))))


@pytest.mark.parametrize("seed", range(3))
def test_clean_graphs_give_no_alarm(seed):
    assert failed(audit(train(clean_data(seed=seed), as_train=bool(seed)))) == set()


class ShowsOwnLabels(legnn.Run):
    """Predicts every node with the labels of all training nodes shown, its own among them."""

    def predict_graph(self, graph, *, device="auto"):
        with self.inference(graph, device=device) as (_, inference):
            return inference.proba(inference.nodes, inference.shown)


class ShowsTestLabels(legnn.Run):
    """Predicts as if test nodes were training nodes."""

    def predict_graph(self, graph, *, device="auto"):
        shown = replace(graph, split=graph.split.masked_fill(graph.test_mask, TRAIN))
        return super().predict_graph(shown, device=device)


def of_class(kind: type, run: legnn.Run) -> legnn.Run:
    """The run with the methods of another class."""
    return kind(**{one.name: getattr(run, one.name) for one in fields(run)})


def test_a_model_that_shows_nodes_their_own_labels_is_found(clean_run):
    found = audit(of_class(ShowsOwnLabels, clean_run))
    assert "own label" in failed(found)
    assert "saw their own label" in found["own label"].detail


def test_a_model_that_shows_test_labels_is_found(clean_run):
    assert "validation and test labels" in failed(audit(of_class(ShowsTestLabels, clean_run)))


@pytest.mark.parametrize("split", ["test", "val"])
def test_a_training_that_reads_hidden_labels_is_found(clean_run, monkeypatch, split):
    made = Task.from_graph.__func__

    def leaky(cls, graph, *given, **options):
        task = made(cls, graph, *given, **options)
        object.__setattr__(task, "train", torch.cat([task.train, getattr(task, split)]))
        return task

    monkeypatch.setattr(Task, "from_graph", classmethod(leaky))
    check = {"test": "training and test labels", "val": "training and validation labels"}[split]
    assert check in failed(audit(clean_run, retrain=True))


def test_a_node_that_is_there_twice_is_found():
    assert "ids that occur twice" in failed(audit(train(repeated_ids(legnn.load(clean_data())))))


def test_an_id_that_differs_in_case_alone_is_a_warning():
    data = clean_data()
    ids = np.array([f"n{i}" for i in range(data.num_nodes)], dtype=object)
    ids[int(data.test_mask.nonzero()[0])] = f" N{int(data.train_mask.nonzero()[0])}"
    data.node_id = ids
    assert audit(train(data))["ids that occur twice"].verdict == "warning"


def table_run(folder, change=lambda nodes: nodes, **options):
    """A run on a folder of tables whose table of nodes was changed."""
    place = table_folder(folder / "tables", clean_data())
    nodes = change(pd.read_csv(place / "nodes.csv", keep_default_na=False))
    nodes.to_csv(place / "nodes.csv", index=False)
    return train(place, **arguments(**options), out=folder / "run")


def test_a_category_whose_values_belong_to_one_class_each_is_found(tmp_path):
    def change(nodes):
        number = np.random.default_rng(0).integers(0, 8, len(nodes))
        return nodes.assign(office=[f"{label}{k}" for label, k in zip(nodes["label"], number, strict=True)])

    found = audit(table_run(tmp_path, change))["features that tell the class"]
    assert found.verdict == "failed"
    assert "'office'" in found.detail


def test_data_that_changed_since_are_found(tmp_path):
    run = table_run(tmp_path)
    place = tmp_path / "tables" / "nodes.csv"
    nodes = pd.read_csv(place, keep_default_na=False)
    nodes.loc[0, "f0"] += 1
    nodes.to_csv(place, index=False)
    assert "data as trained" in failed(audit(run.folder))


def test_predictions_that_are_not_those_of_the_weights_are_found(tmp_path):
    run = table_run(tmp_path)
    table = pd.read_parquet(run.folder / "predictions.parquet")
    table["prediction"], table["confidence"] = "class 0", 1.0
    path = run.folder / "predictions.parquet"
    table.to_parquet(path)
    assert "predictions and scores" in failed(audit(run.folder))


def test_an_ensemble_is_audited_like_a_run(tmp_path):
    place = table_folder(tmp_path / "tables", clean_data())
    legnn.train_seeds(place, **arguments(**QUICK), seeds=2, out=tmp_path / "seeds")
    assert failed(audit(tmp_path / "seeds")) == set()


def test_a_run_on_data_in_memory_is_audited_with_the_data(tmp_path):
    train(clean_data(), out=tmp_path / "run")
    with pytest.raises(legnn.InputError, match="in memory"):
        audit(tmp_path / "run")
    assert failed(audit(tmp_path / "run", data=clean_data())) == set()


def test_the_command_says_what_was_tried_and_exits_with_one_after_a_leak(tmp_path):
    table_run(tmp_path / "clean")
    table_run(tmp_path / "leaky", lambda nodes: nodes.assign(copy=nodes["label"].str[-1:]))
    out = tmp_path / "audit.json"
    clean = CliRunner().invoke(
        make_app(), ["labels", "audit", str(tmp_path / "clean" / "run"), "--flips", "20", "--out", str(out)]
    )
    assert clean.exit_code == 0, clean.output
    assert "0 leaks" in clean.output
    assert {"check", "method", "count", "verdict", "detail"} == json.loads(out.read_text())["findings"][0].keys()
    leaky = CliRunner().invoke(make_app(), ["labels", "audit", str(tmp_path / "leaky" / "run"), "--flips", "20"])
    assert leaky.exit_code == 1
    assert "features that tell the class" in leaky.output


def test_edges_among_test_nodes_are_found_where_training_nodes_are_few():
    data = alike_test_edges(clean_data(2000))
    few = torch.arange(data.num_nodes) % 8 == 0
    data.train_mask, data.val_mask = data.train_mask & few, data.val_mask & few
    assert "edges made of test labels" in failed(audit(train(data)))


def test_a_neighbor_that_tells_one_class_of_many_is_a_warning():
    data = clean_data()
    nodes = (data.y == 1).nonzero().flatten()
    hub = torch.full_like(nodes, int((data.y < 0).nonzero()[0]))
    found = audit(train(add_edges(data, torch.stack([nodes, hub]))))["neighbors that tell the class"]
    assert found.verdict == "warning"


def test_a_graph_of_several_node_types_is_audited():
    found = audit(train(small_hetero(), layers=2))
    assert failed(found) == set()
    assert found["own label"].verdict == "passed"


def test_a_rule_is_scored_on_nodes_that_it_was_not_learned_on():
    y = np.random.default_rng(0).integers(0, 4, 400)
    # a value of its own for each node would tell all that it was learned on
    assert rules.score_rule(np.random.default_rng(1).random(400), y, 4).skill < 0.2
    assert rules.score_rule(np.exp(y) + 0.01 * np.random.default_rng(1).random(400), y, 4).skill > 0.99


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_real_graphs_give_no_alarm(name, real_data):
    assert failed(audit(train(name, epochs=1, layers=2))) == set()


def test_digits_give_no_alarm():
    assert failed(audit(train("digits", epochs=1, layers=2))) == set()
