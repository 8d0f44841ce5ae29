"""A cheaper default is chosen by validation nodes that did not choose the epoch, and only if it is as accurate."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.cheaper import Recording, hold_out, record, stop_early
from benchmarks.cheaper_report import MOST_LOSS, OLD, PATIENCES, Row, Setting, add_rows, choose, compare, read_rows

from legnn.config import Settings
from legnn.runs.graphs import load_new
from legnn.runs.progress import Callbacks
from legnn.runs.session import start_run

NEW = Setting(OLD.hidden // 2, OLD.lr, OLD.patience)
KEPT = Path(__file__).parents[2] / "docs" / "data" / "cheaper.csv"


def _rows(differences, setting=NEW, multiplications=25):
    """One run of `OLD` and of `setting` on each of some graphs, with these differences of accuracy."""
    rows = []
    for number, value in enumerate(differences):
        for split in ("public", "few"):
            rows.append(Row(f"g{number}", split, 0, OLD, 0.8, 100, 0, 100))
            rows.append(Row(f"g{number}", split, 0, setting, 0.8 + value, 100, 0, multiplications))
    return rows


@pytest.mark.parametrize(
    ("differences", "passes"),
    [
        ([0.0, 0.0, 0.0], True),
        ([0.01, -0.01, 0.005], True),
        ([-0.002, -0.002, -0.0021], False),
        # below zero by less than the error, but by more than noise excuses
        ([-0.2, 0.1, 0.05], False),
        ([-2 * MOST_LOSS, 0.0, 0.0], True),
    ],
)
def test_a_candidate_passes_within_its_error_and_the_most_loss(differences, passes):
    assert choose(compare(_rows(differences))) == (NEW if passes else OLD)


def test_the_cheapest_of_those_that_pass_is_chosen():
    narrow, narrower = NEW, NEW._replace(hidden=NEW.hidden // 2)
    rows = [*_rows([0.01, 0.02], narrow, 30), *_rows([-0.01, -0.01], narrower, 10)]
    assert choose(compare(rows)) == narrow
    assert choose(compare([*_rows([0.01, 0.02], narrow, 30), *_rows([0.0, 0.0], narrower, 10)])) == narrower


def test_one_that_costs_more_is_not_chosen():
    assert choose(compare(_rows([0.1, 0.1], multiplications=101))) == OLD


def test_a_graph_without_one_of_the_runs_counts_for_nobody():
    rows = [*_rows([0.0, 0.0]), Row("other", "few", 0, NEW, 0.1, 100, 0, 25)]
    assert compare(rows)[0].difference == 0


def test_half_of_the_nodes_choose_the_epoch_and_the_other_half_scores_it():
    right = np.zeros((3, 200), dtype=bool)
    order = np.random.default_rng(5).permutation(200)
    first, second = order[::2], order[1::2]
    right[1, first] = True  # which the first half chooses, and the second is wrong there
    right[2, second] = True
    assert hold_out(right, np.zeros(right.shape), 10, seed=5) == (0.0, 2)
    right[1:] = True
    assert hold_out(right, np.ones(right.shape), 10, seed=5)[0] == 1.0


def test_patience_ends_a_record_where_it_would_end_training():
    right = np.array([[1, 0], [1, 1], [1, 0], [1, 0], [1, 1]], dtype=bool)
    loss = np.array([[1.0, 1], [1, 1], [1, 1], [1, 1], [0, 0]])
    assert stop_early(right, loss, 2) == (2, 4, True)
    assert stop_early(right, loss, 3) == (5, 5, False)


def test_a_recorded_run_stops_where_a_run_with_that_patience_does():
    settings = Settings(preset="simple").override(hidden=8, layers=2, epochs=60, lr=0.03)
    graph, settings = load_new(settings, "digits")
    resolved = settings.resolve(graph.facts()).override(batch="full")
    rows = record(graph, resolved.override(patience=40), Recording("digits", "public", 0, 8, 0.03))
    assert [row.setting.patience for row in rows] == list(PATIENCES)
    run = start_run(graph, resolved.override(patience=PATIENCES[0]), None, Callbacks(lambda log: None, lambda: False))
    assert rows[0].epochs == run.result.epochs
    assert 0.5 < rows[0].held_out < 1


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = _rows([0.25, -0.5])
    add_rows(tmp_path / "runs.csv", rows[:3])
    add_rows(tmp_path / "runs.csv", rows[3:])
    assert read_rows(tmp_path / "runs.csv") == rows
    assert read_rows(tmp_path / "none.csv") == []


def test_the_default_is_what_the_kept_runs_speak_for():
    assert choose(compare(read_rows(KEPT))) == OLD
