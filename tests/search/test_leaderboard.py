"""The leaderboard and the members, from probabilities of validation nodes alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.search.searches import finish

from legnn.runs import RunFolder
from legnn.search.leaderboard import choose, entries_of, leaderboard, members_of
from legnn.sweep.held_out import SMOOTH_SETTINGS

NODES, CLASSES = 300, 3
COLUMNS = ["name", "postprocess", "val", "test", "seconds", "parameters", "weight", "state"]


def probabilities(y: np.ndarray, accuracy: float, rng: np.random.Generator, sure: float = 0.9) -> np.ndarray:
    """`[n, C]`: right for a fraction of the nodes, always equally sure."""
    classes = np.where(rng.random(len(y)) < accuracy, y, (y + rng.integers(1, CLASSES, len(y))) % CLASSES)
    p = np.full((len(y), CLASSES), (1 - sure) / (CLASSES - 1), dtype=np.float32)
    p[np.arange(len(y)), classes] = sure
    return p


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Finished candidates by name, and the classes of the validation and test nodes."""
    rng = np.random.default_rng(0)
    y_val, y_test = (rng.integers(0, CLASSES, NODES) for _ in range(2))
    values = {"weak": (0.4, 0.5), "good": (0.75, 0.7), "other": (0.75, 0.75), "propagation": (0.5, 0.6)}
    folders = []
    for name, accuracies in values.items():
        arrays = {}
        for suffix, accuracy in zip(("", "_smooth"), accuracies, strict=True):
            arrays["val" + suffix] = probabilities(y_val, accuracy, rng)
            arrays["test" + suffix] = probabilities(y_test, accuracy, rng)
        folder = tmp_path_factory.mktemp("candidates") / name
        settings = {"model.architecture": "label_propagation"} if name == "propagation" else {"model.hidden": 8}
        finish(folder, settings, arrays=arrays)
        folders.append(folder)
    return folders, y_val, y_test


def test_every_candidate_is_there_as_it_is_and_smoothed(found):
    entries = entries_of(found[0])
    assert [(one.name, one.is_smoothed) for one in entries] == [
        ("weak", False), ("weak", True), ("good", False), ("good", True), ("other", False), ("other", True),
        ("propagation", False),
    ]  # fmt: skip


def test_independent_candidates_are_joined_and_the_sum_of_weights_is_one(found):
    folders, y_val, _ = found
    entries = entries_of(folders)
    chosen = choose(entries, y_val)
    mixed = np.tensordot(chosen.weights, np.stack([one.val for one in entries]), 1)
    alone = max((one.val.argmax(1) == y_val).mean() for one in entries)
    assert chosen.weights.sum() == pytest.approx(1)
    assert (chosen.weights > 0).sum() > 1
    assert (mixed.argmax(1) == y_val).mean() > alone
    members = members_of(entries, chosen)
    assert sum(member.weight for member in members) == pytest.approx(1)
    assert {member.folder for member in members} <= {
        f"candidates/{name}" for name in (folder.name for folder in folders)
    }


def test_a_member_has_the_post_processing_of_its_entry(found):
    entries = entries_of(found[0])
    weights = np.full(len(entries), 1 / len(entries))
    members = members_of(entries, replace(choose(entries, found[1]), weights=weights))
    for entry, member in zip(entries, members, strict=True):
        own = RunFolder(entry.folder).settings
        expected = (own.override(SMOOTH_SETTINGS) if entry.is_smoothed else own).model
        assert entry.settings.model == expected, "best.yaml repeats it"
        propagation = expected.label_propagation
        assert member.postprocess == expected.postprocess
        assert (member.propagation_steps, member.propagation_alpha) == (propagation.steps, propagation.alpha)


def test_a_single_model_is_the_only_member(found):
    entries = entries_of(found[0])
    chosen = choose(entries, found[1], single=True)
    assert chosen.weights.nonzero()[0].tolist() == [chosen.single]
    (member,) = members_of(entries, chosen)
    assert member.weight == 1
    assert member.folder.removeprefix("candidates/") in ("good", "other")


def test_probabilities_that_are_too_sure_are_tempered(found):
    folders, y_val, _ = found
    one = entries_of(folders)[2:3]
    assert choose(one, y_val).temperature > 1.2, "sure to .9, right for .75"


def test_a_leaderboard_has_a_row_for_each_entry_the_best_on_validation_first(found):
    folders, y_val, y_test = found
    entries = entries_of(folders)
    chosen = choose(entries, y_val)
    table = leaderboard(entries, chosen, y_val, y_test)
    assert list(table.columns) == COLUMNS
    assert len(table) == len(entries)
    assert table["val"].is_monotonic_decreasing
    assert table["weight"].sum() == pytest.approx(1)


def test_the_leaderboard_is_what_the_terminal_reads(found, tmp_path, capsys):
    from legnn.cli.display import show_leaderboard

    folders, y_val, _ = found
    entries = entries_of(folders)
    # without test nodes
    table = leaderboard(entries, choose(entries, y_val), y_val, np.zeros(0, dtype=int))
    table.to_csv(tmp_path / "leaderboard.csv", index=False)
    show_leaderboard(tmp_path / "leaderboard.csv")
    assert "propagation" in capsys.readouterr().out


def test_permuted_test_labels_change_only_the_column_test(found):
    folders, y_val, y_test = found
    entries = entries_of(folders)
    first, second = (
        leaderboard(entries, choose(entries, y_val), y_val, y)
        for y in (y_test, np.random.default_rng(1).permutation(y_test))
    )
    assert not first["test"].equals(second["test"])
    pd.testing.assert_frame_equal(first.drop(columns="test"), second.drop(columns="test"), check_exact=True)
