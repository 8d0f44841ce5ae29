"""Order and defaults are learned from validation nodes alone, of the graphs that are given alone."""

import json
import shutil

import numpy as np
import pytest
from benchmarks.leave_one_out import leave_one_out
from benchmarks.leave_one_out import main as compare
from benchmarks.portfolio import ALONE, Gains, learn, main, missing_runs, without_graph
from benchmarks.predictions import SMOOTH, Key, Repository
from tests.benchmarks.repositories import GRAPHS, NAMES, permute_test_labels, write_repository

from legnn.config.facts import GraphFacts
from legnn.config.portfolio import Portfolio
from legnn.errors import InputError


def _skill(data, name):
    return {"legnn-gcn-strong": 0.8, "gcn-strong": 0.75}.get(name, 0.5)


def _learned(root, size=5):
    repository = Repository(root)
    return learn(Gains(repository.validations), list(repository.cells), size)


@pytest.fixture
def root(tmp_path):
    return write_repository(tmp_path / "repository", skill=_skill)


def test_the_strongest_candidate_is_first_and_the_default(root):
    found = _learned(root)
    assert found.names[0] == "legnn-gcn-strong"
    assert found.default[0] == "legnn-gcn-strong"


def test_candidates_that_are_right_on_other_graphs_come_before_more_of_the_same(tmp_path):
    strong = ["gcn-wide", "gcn-strong", "unimp-small", "appnp-small"]

    def skill(data, name):
        if data == "three":
            return 0.95 if name == "sage-wide" else 0.4
        return 0.9 if name in strong else 0.7 if name == "gat-wide" else 0.4

    found = _learned(write_repository(tmp_path, skill=skill), ALONE + 1)
    assert set(found.names[:ALONE]) == set(strong)
    assert found.names[ALONE] == "sage-wide", "alone it is below gat-wide"


def test_permuted_test_labels_change_test_figures_and_nothing_that_is_learned_or_chosen(root):
    before, learned = _compared(root), _learned(root)
    permute_test_labels(root)
    after = _compared(root)
    assert _learned(root) == learned
    assert [row[:5] for row in after[0]] == [row[:5] for row in before[0]]
    assert [row.members for row in after[0]] == [row.members for row in before[0]]
    assert after[1] == before[1]
    assert [row.test for row in after[0]] != [row.test for row in before[0]]


def test_runs_of_a_graph_that_is_left_out_change_nothing_that_is_learned_for_it(root, tmp_path):
    other = shutil.copytree(root, tmp_path / "other")
    shutil.rmtree(other / "two")
    write_repository(tmp_path / "more", skill=lambda data, name: 0.3)
    shutil.copytree(tmp_path / "more" / "two", other / "two")
    before, after = _compared(root)[1], _compared(other)[1]
    assert before["two"] == after["two"]
    assert before["one"] != after["one"]


def test_both_forms_of_a_graph_are_left_out_together():
    keys = [Key(data, "few", 0) for data in ("cora", "debian", "debian-hetero")]
    assert [key.data for key in without_graph(keys, "debian")] == ["cora"]
    assert [key.data for key in without_graph(keys, "debian-hetero")] == ["cora"]
    assert len(without_graph(keys, "cora")) == 2


def test_missing_and_failed_runs_are_left_out_and_named(root, capsys):
    for name in NAMES[:4]:
        (root / "one" / "few-0" / f"{name}.json").unlink()
    (root / "two" / "public-0" / "gcn-strong.json").write_text(json.dumps({"error": "no memory", "seconds": 1.0}))
    (root / "two" / "few-0" / "gat-wide.npz").unlink()
    gains = Gains(Repository(root).validations)
    assert missing_runs(gains) == [
        "one few-0: 4 of 12 runs are missing",
        "two few-0: 1 of 12 runs are missing",
        "two public-0: 1 of 12 runs are missing",
    ]
    rows, _ = _compared(root)
    assert {(row.data, row.split, row.seed) for row in rows} == set(Repository(root).cells)
    assert not any(row.members.startswith("gcn-strong") for row in rows if row[:3] == ("two", "public", 0))
    main(["--repository", str(root), "--size", "3"])
    printed = capsys.readouterr()
    assert "one few-0: 4 of 12 runs are missing" in printed.err
    assert json.loads(printed.out)["graphs"] == sorted(GRAPHS)


def test_no_figure_of_test_nodes_is_printed_by_what_learns(root, capsys):
    main(["--repository", str(root)])
    keys = {"command", "graphs", "names", "typed", "default", "typed_default"}
    assert set(json.loads(capsys.readouterr().out)) == keys


def test_the_comparison_writes_report_rows_pictures_and_a_table_of_runs(root, tmp_path, capsys):
    out = {name: tmp_path / name for name in ("rows.json", "ranks.png", "runs.csv")}
    compare([
        "--repository", str(root), "--size", "4", "--json", str(out["rows.json"]), "--picture", str(out["ranks.png"]),
        "--summary", str(out["runs.csv"]),
    ])  # fmt: skip
    report = capsys.readouterr().out
    for part in ("No runs are missing", "mean rank", "critical difference", "What labels are worth", "guard"):
        assert part in report
    rows = json.loads(out["rows.json"].read_text())
    chosen = [row["test"] for row in rows if row["method"] == "single"]
    assert np.mean(chosen) == pytest.approx(0.8, abs=0.05)
    assert (tmp_path / "ranks-few.png").is_file()
    assert len(out["runs.csv"].read_text().splitlines()) == 1 + len(GRAPHS) * 2 * len(NAMES)


def test_an_entry_is_read_as_it_was_written(root):
    cell = Repository(root).cells[Key("one", "few", 0)]
    one = cell.validation
    assert one.entries("gcn-wide") == ["gcn-wide", "gcn-wide" + SMOOTH]
    assert one.entries("hgt") == []
    for entry, stored in (("gcn-wide", "val"), ("gcn-wide" + SMOOTH, "val_smooth")):
        assert one.p(entry).sum(1) == pytest.approx(1, abs=0.01)
        assert one.accuracies[entry] == pytest.approx(cell.record("gcn-wide")[stored])


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no runs"):
        Repository(tmp_path)


def test_candidates_for_several_types_alternate_with_the_others_where_there_are_types():
    names = {"names": ["a", "b", "c"], "typed": ["x"], "default": ["a"], "typed_default": ["x"]}
    portfolio = Portfolio(command="", graphs=[], **names)
    facts = {"num_train": 10, "num_classes": 5, "counts_features": False, "has_label_edges": False}
    assert portfolio.order(GraphFacts(**facts)) == ["a", "b", "c"]
    assert portfolio.order(GraphFacts(**facts, num_types=2)) == ["a", "x", "b", "c"]
    assert portfolio.defaults(GraphFacts(**facts, num_types=2)) == ["x", "a"]


def _compared(root):
    repository = Repository(root)
    return leave_one_out(repository, 3)
