"""Nodes of another graph are those of the run by their ids, or where the graph is the same; never by their row."""

import numpy as np
import pytest
import torch
from tests.graphs import small_data
from tests.named import named

import legnn

QUICK = {"epochs": 3, "hidden": 8, "preset": "simple", "device": "cpu"}


@pytest.fixture(scope="module")
def run():
    return legnn.train(small_data(), settings=named(**QUICK))


NEW = "all of its nodes are new"


def is_new(table) -> bool:
    return any(NEW in note for note in table.attrs["notes"])


def splits_of(data) -> list[str]:
    masks = [data.train_mask, data.val_mask, data.test_mask]
    return np.select([mask.numpy() for mask in masks], ["train", "val", "test"], default="").tolist()


def test_an_unrelated_graph_of_as_many_nodes_has_splits_and_labels_of_its_own(run):
    other = small_data(seed=1)
    for mask in ("train_mask", "val_mask", "test_mask"):
        permuted = other[mask][torch.randperm(40, generator=torch.Generator().manual_seed(0))]
        other[mask] = permuted & (other.y >= 0)
    table, scores = run.predict(other), run.evaluate(other)
    assert table["split"].tolist() == splits_of(other) != run.predictions["split"].tolist()
    assert is_new(table)
    assert [note.code for note in scores.notes] == ["new-graph"]
    # another label of a node that is in training there changes predictions of others, one held out there does not
    train, test = other.train_mask.nonzero()[0], other.test_mask.nonzero()[0]
    for node, changes in ((train, True), (test, False)):
        changed = other.clone()
        changed.y = other.y.clone()
        changed.y[node] = (other.y[node] + 1) % 3
        moved = (run.predict_proba(changed) - run.predict_proba(other)).abs().max(axis=1).drop(index=node.item())
        assert bool((moved > 0).any()) is changes


def test_the_same_graph_without_ids_is_recognized_by_its_edges(run):
    data = small_data()
    data.x = data.x + 0.1
    data.train_mask[:] = False
    table = run.predict(data)
    assert table["split"].tolist() == run.predictions["split"].tolist()
    assert not is_new(table)


def test_node_ids_of_pyg_data_are_used(run):
    trained = legnn.train(small_data(node_id=torch.arange(100, 140)), settings=named(**QUICK))
    order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    data = small_data(seed=1)
    data.node_id = torch.arange(100, 140)[order]
    found = trained.predict(data)
    known = trained.predictions.set_index("id")["split"].loc[found["id"]].to_numpy()
    in_both = (known != "") & (data.y >= 0).numpy()
    assert in_both.sum() > 10
    assert found["split"].to_numpy()[in_both].tolist() == known[in_both].tolist()
    # a run of data without ids knows none of them
    assert is_new(run.predict(data))


def test_a_graph_without_a_training_mask_shows_all_labels_that_are_not_held_out(run):
    other = small_data(seed=1)
    known = other.y >= 0
    expected = np.where(other.val_mask, "val", np.where(other.test_mask, "test", np.where(known, "train", ""))).tolist()
    other.train_mask[:] = False
    assert run.predict(other)["split"].tolist() == expected


def test_a_prepared_folder_remembers_that_its_graph_has_no_ids(tmp_path):
    legnn.prepare_folder(small_data(), tmp_path / "prepared")
    run = legnn.train(tmp_path / "prepared", settings=named(**QUICK))
    assert not run.card.has_ids
    assert is_new(run.predict(small_data(seed=1)))
