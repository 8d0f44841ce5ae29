"""Runs on graphs of several node types: only the labeled type is predicted, and another graph is fitted by names."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments
from tests.typed_graphs import AUTHORS, small_hetero, typed_folder, with_tags

import legnn
from legnn.datasets import load
from legnn.errors import InputError
from legnn.runs import RunFolder
from legnn.training import Task

QUICK = {"epochs": 4, "hidden": 8}


@pytest.mark.parametrize("options", [{}, {"backbone": "gat"}, {"as_train": True, "pseudo_label_threshold": 0.1}])
def test_predictions_are_of_the_labeled_type_alone(tmp_path, options):
    ids = [500 + i for i in range(40)]
    tables = typed_folder(tmp_path / "tables", with_tags(small_hetero()), ids=ids)
    run = legnn.train(tables, **arguments(**QUICK, **options), out=tmp_path / "run")
    assert run.predictions["id"].tolist() == ids
    assert run.predictions["id"].dtype == np.int64
    assert run.predictions["split"].isin(["train", "val", "test", ""]).all()
    assert any(note.code == "features-computed" for note in run.result.notes)
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(), run.predictions, check_exact=True)
    card = RunFolder.open(run.folder).card
    assert (card.types, card.target_type, card.computed_features) == (["author", "paper", "tag"], "paper", ["tag"])


@pytest.mark.parametrize(
    "options", [{}, {"label_features": "class-mean"}, {"as_train": True, "pseudo_label_threshold": 0.1}]
)
def test_mini_batches_take_several_types(tmp_path, options):
    graph = with_tags(small_hetero())
    run = legnn.train(graph, **arguments(**QUICK, **options, batch=8, fanout="3"), out=tmp_path / "run")
    assert run.predictions["id"].tolist() == list(range(40))
    assert run.model.num_types == 3
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(graph), run.predictions, check_exact=True)


def test_pseudo_labels_are_for_the_labeled_type_alone():
    data = load(small_hetero())
    for candidates in ("unlabeled", "unsplit"):
        task = Task.from_graph(data, torch.device("cpu"), candidates=candidates)
        assert data.node_types.target_mask[task.candidates].all()
        assert len(task.candidates) > 0


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path):
    graph = with_tags(small_hetero())
    whole = legnn.train(graph, **arguments(**QUICK), out=tmp_path / "whole")
    done: list = []
    with pytest.raises(legnn.Interrupted):
        legnn.train(
            graph,
            **arguments(**QUICK),
            out=tmp_path / "cut",
            on_epoch=done.append,
            should_stop=lambda: len(done) >= 1,
        )
    other = with_tags(small_hetero())
    other["paper"].x[0] += 1
    with pytest.raises(InputError, match="is a run on other data"):
        legnn.resume(tmp_path / "cut", other)
    resumed = legnn.resume(tmp_path / "cut", graph)
    pd.testing.assert_frame_equal(resumed.predictions, whole.predictions, check_exact=True)


@pytest.mark.parametrize("label_features", ["one-hot", "class-mean"])
def test_no_prediction_depends_on_the_nodes_own_label(tmp_path, label_features):
    graph = with_tags(small_hetero())
    graph["tag"].x = torch.rand(6, 2)
    run = legnn.train(graph, **arguments(**QUICK, label_features=label_features), out=tmp_path / "run")
    before = legnn.Run.open(run.folder).predict(graph)
    for node in graph["paper"].train_mask.nonzero().flatten()[:6].tolist():
        changed = graph.clone()
        changed["paper"].y[node] = (changed["paper"].y[node] + 1) % 3
        after = legnn.Run.open(run.folder).predict(changed)
        assert after["confidence"][node] == before["confidence"][node]
        assert not after.equals(before)


def test_another_graph_is_numbered_by_the_names_of_its_types(tmp_path):
    graph = small_hetero()
    run = legnn.train(graph, **arguments(**QUICK, labels="vanilla"), out=tmp_path / "run")
    turned = type(graph)(name="turned")
    for kind in ("paper", "author"):  # the other way round
        for field, value in graph[kind].items():
            turned[kind][field] = value
    for relation in graph.edge_types:
        turned[relation].edge_index = graph[relation].edge_index
    found = legnn.Run.open(run.folder).predict(turned)
    assert found["prediction"].tolist() == run.predictions["prediction"].tolist()
    np.testing.assert_allclose(found["confidence"], run.predictions["confidence"], rtol=1e-4)


def test_a_grown_folder_is_predicted_with_or_without_labels(tmp_path):
    tables = typed_folder(tmp_path / "tables", small_hetero(), ids=[500 + i for i in range(40)])
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    papers = pd.read_csv(tables / "nodes" / "paper.csv")
    new = papers.iloc[[0]].assign(id=999, label=None, split=None)
    pd.concat([papers, new]).to_csv(tables / "nodes" / "paper.csv", index=False)
    grown = legnn.Run.open(run.folder).predict(tables)
    assert grown["id"].tolist() == [*range(500, 540), 999]
    assert grown["split"].tolist() == [*run.predictions["split"], ""]
    papers.drop(columns=["label", "split"]).to_csv(tables / "nodes" / "paper.csv", index=False)
    assert legnn.Run.open(run.folder).predict(tables)["id"].tolist() == list(range(500, 540))


def test_a_type_that_is_gone_leaves_the_others_their_columns(tmp_path):
    graph = small_hetero(author_channels=9)  # the widest
    graph["tag"].x = torch.rand(6, 2)
    with_tags(graph)
    run = legnn.train(graph, **arguments(**QUICK), out=tmp_path / "run")
    less = small_hetero()
    del less["author"], less["author", "writes", "paper"]
    less["tag"].x = torch.rand(6, 2)
    assert len(legnn.Run.open(run.folder).predict(with_tags(less))) == 40


def test_computed_features_exist_for_no_other_graph(tmp_path):
    graph = with_tags(small_hetero())
    run = legnn.train(graph, **arguments(**QUICK), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(graph), run.predictions, check_exact=True)
    other = with_tags(small_hetero(seed=1))
    tables = typed_folder(tmp_path / "tables", other)
    for data in (other, tables):
        with pytest.raises(
            InputError, match=r"features of tag were computed from the graph .* do not exist for another"
        ):
            legnn.Run.open(run.folder).predict(data)


def test_computed_features_are_those_of_the_same_tables(tmp_path):
    tables = typed_folder(tmp_path / "tables", with_tags(small_hetero()))
    run = legnn.train(tables, **arguments(**QUICK), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.Run.open(run.folder).predict(tables), run.predictions, check_exact=True)


def drop_features(graph):
    del graph["author"].x


def another_type(graph):
    graph["editor"].x = torch.rand(3, 2)
    graph["editor", "edits", "paper"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 2]])


def author_classes(graph):
    del graph["paper"].y
    graph["author"].y = torch.arange(AUTHORS) % 3


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_features, "features of author in small were computed from its own .* trained on"),
        (another_type, "has the node type 'editor', which the run does not know; it knows author, paper"),
        (
            lambda g: g["author"].update({"x": torch.rand(AUTHORS, 4)}),
            "'author' of small has 4 features that are not the 3",
        ),
        (author_classes, "has labels of 'author', but 'paper' is to be predicted"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused(tmp_path, damage, message):
    run = legnn.train(small_hetero(), **arguments(**QUICK), out=tmp_path / "run")
    graph = small_hetero()
    damage(graph)
    with pytest.raises(InputError, match=message):
        legnn.Run.open(run.folder).predict(graph)


def test_one_type_and_several_do_not_fit_each_other(tmp_path):
    several = legnn.train(small_hetero(), **arguments(**QUICK), out=tmp_path / "several")
    one = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "one")
    with pytest.raises(InputError, match="was trained on several node types and small has one"):
        legnn.Run.open(several.folder).predict(small_data())
    with pytest.raises(InputError, match="was trained on one node type and small has several"):
        legnn.Run.open(one.folder).predict(small_hetero())


def test_several_seeds_take_several_types(tmp_path):
    summary = legnn.train_seeds(with_tags(small_hetero()), **arguments(**QUICK), seeds=2, out=tmp_path / "runs").summary
    assert len(summary.seeds) == 2


def test_scaling_is_chosen_by_the_labeled_type():
    graph = with_tags(small_hetero(x=(torch.rand(40, 8) < 0.2).float()))
    assert legnn.Settings().resolve(load(graph).facts()).model.feature_scale == "entries"
    assert legnn.Settings().resolve(load(small_hetero()).facts()).model.feature_scale == "standard"
