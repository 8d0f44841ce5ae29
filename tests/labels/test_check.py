"""Given labels that look wrong: planted errors come first, and no label has a part in its own judgment."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.commands import run_command
from tests.graphs import small_data, table_folder
from tests.named import arguments, named

import legnn
from legnn.errors import InputError
from legnn.labels.confident import (
    calibrate,
    class_thresholds,
    confident_joint,
    estimated_errors,
    noise_matrix,
    probability_right,
)
from legnn.labels.cross_fitted import cross_fitted_probabilities
from legnn.labels.evidence import combine_evidence, count_neighbor_labels
from legnn.training import assign_folds

QUICK = {"epochs": 4, "hidden": 8}


def planted(nodes: int = 200, every: int = 20):
    """A graph whose classes are easy to tell, with every 20th label moved to the next class."""
    data = small_data(nodes)
    flipped = (torch.arange(nodes) % every == 0) & (data.y >= 0)
    data.x = data.x + 3 * torch.nn.functional.one_hot(torch.arange(nodes) % 3, data.x.size(1)).float()
    data.y = torch.where(flipped, (data.y + 1) % 3, data.y)
    return data, flipped.nonzero().flatten().tolist()


def probabilities(nodes: int = 300, classes: int = 4, seed: int = 0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.5), nodes)
    return p, np.array([rng.choice(classes, p=row) for row in p])


def test_planted_errors_are_ranked_first_and_the_true_class_is_suggested():
    data, flipped = planted()
    found = legnn.check_labels(data, folds=3, repeats=1, epochs=150, hidden=16, backbone="gcn", as_train=False)
    table = found.table
    assert len(table) == int((data.y >= 0).sum())
    first = table.head(len(flipped))
    assert len(set(first["id"]) & set(flipped)) >= 0.9 * len(flipped)
    mine = first[first["id"].isin(flipped)]
    assert (mine["suggested"] == mine["id"] % 3).mean() > 0.9
    assert table["score"].is_monotonic_decreasing
    assert 0.5 * len(flipped) <= found.expected_errors <= 2 * len(flipped)
    assert set(table.loc[table["split"] != "train", "fold"]) == {-1}
    assert set(table.loc[table["split"] == "train", "fold"]) == {0, 1, 2}


@pytest.mark.parametrize("how", [{}, {"labels": "concat", "postprocess": "correct_and_smooth"}])
@pytest.mark.parametrize("split", ["train_mask", "test_mask"])
def test_a_nodes_given_label_changes_no_probability_of_its_classes(how, split):
    """To the bit."""
    data = small_data()
    node = int(data[split].nonzero()[0])
    y = data.y.clone()
    y[node] = (y[node] + 1) % 3
    rows = {}
    for name, labels in {"before": data.y, "after": y}.items():
        graph = legnn.load(small_data(y=labels))
        settings = legnn.Settings(values=named(**{**QUICK, **how}))
        p = cross_fitted_probabilities(graph, {"model": settings}, folds=2, repeats=2)["model"]
        rows[name] = p, combine_evidence(p, p)
    for before, after in zip(rows["before"], rows["after"], strict=True):
        assert np.array_equal(before[node], after[node])
    assert split != "train_mask" or not np.array_equal(rows["before"][1], rows["after"][1])


def test_foldings_follow_from_the_ids_and_differ():
    ids = np.arange(1000)
    both = pd.crosstab(assign_folds(ids, 5).numpy(), assign_folds(ids, 5, 1).numpy()).to_numpy()
    assert both.shape == (5, 5)
    assert both.min() > 15


def test_thresholds_are_the_mean_confidence_in_given_classes():
    p, given = probabilities()
    direct = [np.mean([row[c] for row, label in zip(p, given, strict=True) if label == c]) for c in range(4)]
    assert np.allclose(class_thresholds(p, given), direct)


def test_the_confident_joint_counts_nodes_above_thresholds_and_keeps_the_given_labels():
    p, given = probabilities()
    t = class_thresholds(p, given)
    joint = np.zeros((4, 4))
    for row, label in zip(p, given, strict=True):
        above = [c for c in range(4) if row[c] >= t[c]]
        if above:
            joint[label, max(above, key=lambda c: row[c])] += 1
    joint *= (np.bincount(given) / joint.sum(1))[:, None]
    assert np.allclose(confident_joint(p, given), joint)
    assert estimated_errors(p, given) == pytest.approx(joint.sum() - np.trace(joint))
    # a class that nobody has, and one of which no node is confident
    p = np.array([[0.6, 0.4, 0.0], [0.5, 0.5, 0.0]])
    assert confident_joint(p, np.array([0, 0])).sum() == pytest.approx(2)


def test_noise_between_two_classes_is_found_and_raises_suspicion_of_them_alone():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 4000)
    p = 0.7 * np.eye(4)[true] + 0.075
    given = np.where((true == 0) & (rng.random(4000) < 0.3), 1, true)
    noise = noise_matrix(p, given)
    assert noise[0, 1] > 3 * noise[[0, 1, 2], [2, 2, 3]].max()
    # equal probabilities, and the label that errors turn into is the more suspicious
    same = np.vstack([p, np.full((2, 4), 0.25)])
    right = probability_right(same, np.append(given, [1, 2]))
    assert right[-2] < right[-1]


def test_calibration_sharpens_what_is_unsure_and_softens_what_is_too_sure_in_spite_of_wrong_labels():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.3), 4000)
    given = np.array([rng.choice(4, p=row) for row in p])
    wrong = rng.random(4000) < 0.05
    given[wrong] = rng.integers(0, 4, wrong.sum())
    for power in (0.5, 1.0, 2.0):
        changed = p**power / (p**power).sum(1, keepdims=True)
        assert np.abs(calibrate(changed, given) - p).mean() < 0.03


def test_neighbors_are_counted_by_their_labels_without_the_node_itself():
    edges = torch.tensor([[0, 0, 1, 2, 3], [1, 2, 3, 3, 3]])
    masks = {"train_mask": torch.tensor([1, 1, 0, 0]).bool(), "val_mask": torch.tensor([0, 0, 0, 1]).bool()}
    y = torch.tensor([0, 1, -1, 1])
    graph = legnn.load(small_data(4, 2, y=y, edge_index=edges, **masks, test_mask=torch.zeros(4).bool()))
    assert count_neighbor_labels(graph).tolist() == [[0, 1], [1, 1], [1, 1], [0, 1]]


def test_the_labels_of_a_run_are_checked_with_its_data_and_settings(tmp_path):
    data = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(data, **arguments(**QUICK, labels="concat"), out=tmp_path / "run")
    of_run = legnn.check_labels(tmp_path / "run", folds=2, repeats=1).table
    # the run's settings are complete, and chosen for all labels; a fold's are chosen without it
    assert of_run["id"].tolist() == legnn.check_labels(run, folds=2, repeats=1).table["id"].tolist()
    assert set(of_run["label"]) == {"class 0", "class 1", "class 2"}
    with pytest.raises(InputError, match=r"in its own data; leave data.undirected out"):
        legnn.check_labels(run, settings=named(undirected=False))


def test_what_cannot_be_checked_is_refused():
    one = small_data(80)
    lonely = one.train_mask & (assign_folds(np.arange(80), 3) == 0)
    for given, message in (
        ({"folds": 1}, "at least 2 folds, got 1"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"settings": {"data.cross_label_edges": 5}}, "uses all labels to add edges"),
        ({"folds": 3, "source": small_data(80, train_mask=lonely)}, "are in one of 3 folds"),
    ):
        with pytest.raises(InputError, match=message):
            legnn.check_labels(**{"source": small_data(), **QUICK, **given})


def test_the_command_prints_the_evidence_and_writes_all_labels(tmp_path, monkeypatch, capsys):
    data, _ = planted(80)
    folder = table_folder(tmp_path / "tables", data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    options = [
        "--folds",
        "2",
        "--repeats",
        "1",
        "--set",
        "train.epochs=4",
        "--set",
        "model.hidden=8",
        "--most",
        "3",
        "--out",
        "x.csv",
    ]
    assert run_command("labels", "check", folder, *options) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert f"3 of {int((data.y >= 0).sum())} labels, the most suspicious first" in out
    assert "wrong labels: at most about" in out
    table = pd.read_csv("x.csv")
    assert len(table) == int((data.y >= 0).sum())
    assert table["id"][0] in out
    assert {"label", "suggested", "score", "neighbors_label"} <= set(table.columns)
