"""`auto` from data to an ensemble: its folder, its budget, and what it does after an interruption."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.backbones import registered
from tests.cli.test_cli import command, refused
from tests.graphs import small_data, table_folder
from tests.typed_graphs import small_hetero
from torch_geometric.nn import SAGEConv

import legnn
from legnn.errors import InputError, Interrupted
from legnn.nn import lifted
from legnn.runs import Ensemble
from legnn.sweep import SerialExecutor

__all__ = ["command"]

ROOT = Path(__file__).parents[2]
ONLY = ["label-propagation", "gcn-direct", "mlp-wide"]
QUICK = {"only": ONLY, "budget": 60, "epochs": 5, "device": "cpu", "trials": 3, "executor": SerialExecutor()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of tables, and a search on it."""
    place = tmp_path_factory.mktemp("made")
    tables = table_folder(place / "tables", small_data())
    legnn.auto(tables, out=place / "auto", **QUICK)
    return place


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made / "auto", tmp_path / "auto")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- what it leaves --------------------------------------------------------------------------------------------------


def test_the_folder_is_opened_and_predicts_like_a_run(made):
    ensemble = legnn.open(made / "auto")
    assert isinstance(ensemble, Ensemble)
    table = ensemble.predict()
    pd.testing.assert_frame_equal(table, ensemble.predictions, check_exact=True)
    assert len(table) == 40
    assert ensemble.result.val == ensemble.evaluate().val


def test_every_candidate_is_a_run_and_has_its_row(made):
    board = pd.read_csv(made / "auto" / "leaderboard.csv")
    assert set(board["name"]) == set(ONLY)
    for name in ONLY:
        assert legnn.open(made / "auto" / "candidates" / name).result.epochs <= 5
    ensemble = legnn.open(made / "auto")
    members = board[board["weight"] > 0]
    assert sorted(members["weight"]) == pytest.approx(sorted(ensemble.weights))


def test_best_yaml_repeats_the_best_single_model(command, made):
    done = command("train", "--config", made / "auto" / "best.yaml", "--out", "again")
    assert done.code == 0, done.err
    again = legnn.open("again")
    single = legnn.auto(made / "tables", out="single", single=True, **QUICK)
    assert len(single.members) == 1
    assert single.weights == [1]
    # the probabilities of an ensemble are tempered
    for name in ("accuracy", "macro_f1", "roc_auc"):
        assert again.result.val[name] == pytest.approx(single.result.val[name])
        assert again.result.test[name] == pytest.approx(single.result.test[name])


def test_permuted_test_labels_change_nothing_but_test_scores(tmp_path):
    data = small_data()
    changed = data.clone()
    test = data.test_mask.nonzero().flatten()
    changed.y[test] = data.y[test.roll(1)]
    found = {name: legnn.auto(one, out=tmp_path / name, **QUICK) for name, one in (("a", data), ("b", changed))}
    first, second = found.values()
    assert first.weights == second.weights
    pd.testing.assert_frame_equal(first.predictions, second.predictions, check_exact=True)
    boards = [pd.read_csv(tmp_path / name / "leaderboard.csv").drop(columns="seconds") for name in found]
    pd.testing.assert_frame_equal(*(board.drop(columns="test") for board in boards), check_exact=True)
    assert not boards[0]["test"].equals(boards[1]["test"])
    quick = {"test": None, "seconds": 0.0}
    assert replace(first.result, **quick) == replace(second.result, **quick)
    texts = [(tmp_path / name / "best.yaml").read_text().replace(f"/{name}/", "/") for name in found]
    assert texts[0] == texts[1]


def test_data_in_memory_are_kept_with_the_search(tmp_path):
    ensemble = legnn.auto(small_data(), out=tmp_path / "auto", **QUICK)
    again = legnn.open(tmp_path / "auto")
    pd.testing.assert_frame_equal(again.predict(), ensemble.predictions, check_exact=True)


def test_data_without_test_nodes_will_do(command, tmp_path):
    data = small_data()
    data.test_mask[:] = False
    table_folder(tmp_path / "tables", data)
    options = ("--budget", "60s", "--only", "label-propagation", "--out", "auto")
    done = command("auto", tmp_path / "tables", *options)
    assert done.code == 0, done.err
    assert "label-propagation" in done.out


def test_a_candidate_that_reads_the_data_in_memory_otherwise_fails_with_its_reason(tmp_path):
    legnn.auto(small_hetero(), out=tmp_path / "auto", **{**QUICK, "only": ["rgcn", "label-propagation"]})
    board = pd.read_csv(tmp_path / "auto" / "leaderboard.csv")
    assert "label-propagation" in set(board["name"])
    failure = tmp_path / "auto" / "candidates" / "rgcn" / "failure.txt"
    assert "self_loops" in failure.read_text()


# --- continued -------------------------------------------------------------------------------------------------------


def test_a_finished_search_with_the_same_budget_trains_nothing_more(made, folder):
    before = contents(folder / "candidates")
    ensemble = legnn.auto(made / "tables", out=folder, **{**QUICK, "only": [*ONLY, "mlp-wide", "gcn-strong"]})
    assert contents(folder / "candidates") == before
    assert {path.name for path in (folder / "candidates").iterdir()} == set(ONLY), "no candidate was begun"
    assert {member.folder.name for member in ensemble.members} <= set(ONLY)


def test_a_larger_budget_goes_on_and_keeps_what_is_finished(made, folder):
    before = contents(folder / "candidates")
    legnn.auto(made / "tables", out=folder, **{**QUICK, "only": [*ONLY, "gcn-strong"], "trials": 4, "budget": 120})
    after = contents(folder / "candidates")
    assert {name: after[name] for name in before} == before
    assert "gcn-strong/held_out.safetensors" in after


def test_an_interrupted_search_says_so_and_continues(tmp_path):
    data, first = small_data(), tmp_path / "auto" / "candidates" / ONLY[0] / "held_out.safetensors"
    with pytest.raises(Interrupted):
        legnn.auto(data, out=tmp_path / "auto", should_stop=first.is_file, **QUICK)
    assert not (tmp_path / "auto" / "result.json").exists()
    before = contents(tmp_path / "auto" / "candidates" / ONLY[0])
    legnn.auto(data, out=tmp_path / "auto", **QUICK)
    assert contents(tmp_path / "auto" / "candidates" / ONLY[0]) == before
    assert set(pd.read_csv(tmp_path / "auto" / "leaderboard.csv")["name"]) == set(ONLY)


# --- refused ---------------------------------------------------------------------------------------------------------


def test_another_data_set_or_seed_is_refused(command, folder, made, tmp_path):
    other = table_folder(tmp_path / "other", small_data(seed=1))
    before = contents(folder)
    refused(command("auto", other, "--out", folder), "holds a search with other data")
    refused(command("auto", made / "tables", "--seed", 1, "--out", folder), "holds a search with another source, seed")
    with pytest.raises(InputError, match="holds a search with other data"):
        legnn.auto(small_data(seed=2), out=folder, **QUICK)
    assert contents(folder) == before


def test_a_foreign_folder_is_refused_and_left_alone(command, made, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("dear")
    refused(command("auto", made / "tables", "--out", foreign), "is already there")
    with pytest.raises(InputError, match="is already there"):
        legnn.auto(small_data(), out=foreign, **QUICK)
    assert list(contents(foreign)) == ["letter.txt"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--budget", "soon"), "budget must be a time above 0"),
        (("--jobs", "0"), "jobs must be at least 1, got 0"),
        (("--only", "gcm"), "there is no candidate 'gcm'"),
        (("--only", "mlp-wide", "--hidden", "9"), "no candidate of the portfolio has the settings that are given"),
        (("--dropout", "2"), "dropout must be"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(command, made, tmp_path, options, words):
    refused(command("auto", made / "tables", *options), words)
    assert list((tmp_path / "here").iterdir()) == []


def test_an_unknown_setting_is_named(tmp_path):
    with pytest.raises(InputError, match="hiden"):
        legnn.auto(small_data(), out=tmp_path / "auto", hiden=8)


def test_a_registered_layer_is_searched_in_this_process(tmp_path):
    with registered("own mean", lifted(lambda settings, both, out: SAGEConv(both, out))):
        quick = {**QUICK, "only": ["gcn-direct"], "executor": None, "trials": 1}
        ensemble = legnn.auto(small_data(), backbone="own mean", out=tmp_path / "auto", **quick)
        assert {run.settings.model.backbone for run in ensemble.members} == {"own mean"}


def test_a_note_says_that_accuracy_compares_candidates_whose_epochs_another_metric_chose(made, tmp_path):
    quick = {**QUICK, "only": ["mlp-wide"], "trials": 1, "choose_by": "macro_f1"}
    notes = legnn.auto(small_data(), out=tmp_path / "auto", **quick).result.notes
    assert "compared-by-accuracy" in [note.code for note in notes]
    assert "compared-by-accuracy" not in [note.code for note in legnn.open(made / "auto").result.notes]


def test_data_without_validation_nodes_are_refused(tmp_path):
    data = small_data()
    data.val_mask[:] = False
    with pytest.raises(InputError, match="is for validation"):
        legnn.auto(data, out=tmp_path / "auto", **QUICK)
    assert not (tmp_path / "auto").exists()


def test_a_search_in_which_nothing_was_trained_says_why(tmp_path):
    with pytest.raises(InputError, match=r"no candidate was trained in .* s; give a larger `budget`"):
        legnn.auto(small_data(), out=tmp_path / "auto", **{**QUICK, "only": ONLY[1:], "budget": 1})


def test_label_propagation_is_there_however_short_the_budget_is(tmp_path):
    ensemble = legnn.auto(small_data(), out=tmp_path / "auto", device="cpu", budget=0.5)
    assert [member.folder.name for member in ensemble.members] == ["label-propagation"]


# --- with processes --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_processes_the_budget_is_respected_though_a_candidate_does_not_end(tmp_path):
    began = time.monotonic()
    # epochs of several seconds, on one thread
    data = small_data(nodes=20_000, channels=50)
    quick = {**QUICK, "only": ["label-propagation", "gcn-direct"], "epochs": 100_000, "budget": 30, "executor": None}
    legnn.auto(data, settings={"model.hidden": 512, "train.patience": 100_000}, out=tmp_path / "auto", jobs=2, **quick)
    assert time.monotonic() - began < 1.1 * 30 + 5
    assert json.loads((tmp_path / "auto" / "time.json").read_text())["seconds"] == 30


def wait_until(is_so, process: subprocess.Popen, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_with_processes_a_search_that_was_killed_continues_and_ctrl_c_says_how(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    # the second would train for hours
    arguments = ["auto", str(tables), "--budget", "1h", "--jobs", "1", "--only", "label-propagation,gcn-direct",
                 "--epochs", "1000000", "--set", "train.patience=1000000",
                 "--set", "train.checkpoint_seconds=0"]  # fmt: skip
    code = "import sys\nfrom legnn.cli import main\nsys.argv[0] = 'legnn'\nmain()\n"

    def begin(*more: str) -> subprocess.Popen:
        started = [sys.executable, "-c", code, *arguments, *more]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "COLUMNS": "300"}
        return subprocess.Popen(
            started, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    candidates = tmp_path / "runs" / "tables-auto" / "candidates"
    metrics = candidates / "gcn-direct" / "metrics.jsonl"

    def epochs() -> int:
        return metrics.read_text().count("\n") if metrics.is_file() else 0

    killed = begin()
    wait_until(lambda: epochs() > 30, killed)
    killed.kill()
    killed.communicate()
    first = contents(candidates / "label-propagation")
    assert "held_out.safetensors" in first
    time.sleep(1)  # its worker ends after the epoch in flight
    before = epochs()
    second = begin("--out", "runs/tables-auto")
    wait_until(lambda: epochs() > before + 30, second)
    second.send_signal(signal.SIGINT)
    out, err = second.communicate(timeout=60)
    assert (second.returncode, out) == (130, "")
    assert err.splitlines()[-1].startswith("legnn: interrupted; continue with: legnn auto ")
    assert err.splitlines()[-1].endswith("--out runs/tables-auto")
    assert contents(candidates / "label-propagation") == first
    assert not (candidates / "gcn-direct" / "failure.txt").exists()
    lines = [json.loads(line)["epoch"] for line in metrics.read_text().splitlines()]
    assert lines == list(range(1, len(lines) + 1)), "it went on from its checkpoint"


def test_a_search_is_resumed_by_its_folder_alone(tmp_path):
    first = tmp_path / "auto" / "candidates" / ONLY[0] / "held_out.safetensors"
    with pytest.raises(Interrupted):
        legnn.auto(small_data(), out=tmp_path / "auto", should_stop=first.is_file, **{**QUICK, "trials": 1})
    with pytest.raises(InputError, match="is a search that is not finished"):
        legnn.open(tmp_path / "auto")
    ensemble = legnn.resume(tmp_path / "auto")
    assert [member.settings.model.architecture for member in ensemble.members] == ["label_propagation"]
    assert legnn.resume(tmp_path / "auto").weights == ensemble.weights


# --- samplers --------------------------------------------------------------------------------------------------------


def chosen(folder: Path) -> dict[str, dict]:
    """The settings of each candidate by the plan of the search."""
    runs = json.loads((folder / "sweep.json").read_text())["runs"]
    return {name: run["values"] for name, run in runs.items()}


@pytest.mark.parametrize(("sampler", "space"), [("tpe", "wide"), ("tpe", "paper"), ("grid", "paper")])
def test_other_samplers_search_and_an_interrupted_search_proposes_the_same(tmp_path, sampler, space):
    pytest.importorskip("optuna")
    options = {**QUICK, "only": None, "sampler": sampler, "space": space, "hidden": 8, "layers": 2, "backbone": "gcn"}
    ensemble = legnn.auto(small_data(), out=tmp_path / "whole", **options)
    whole = chosen(tmp_path / "whole")
    assert len(whole) == 3
    assert len({str(sorted(values.items())) for values in whole.values()}) == 3
    assert all(values["model.hidden"] == 8 for values in whole.values()), "settings of the user are not varied"
    assert ensemble.members
    legnn.auto(small_data(), out=tmp_path / "cut", **{**options, "trials": 2})
    legnn.auto(small_data(), out=tmp_path / "cut", **{**options, "budget": 200})
    without_source = [
        {name: {k: v for k, v in values.items() if k != "data.source"} for name, values in plan.items()}
        for plan in (whole, chosen(tmp_path / "cut"))
    ]
    assert without_source[0] == without_source[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"space": "full"}, "space must be one of wide, paper"),
        ({"sampler": "random"}, "sampler must be one of portfolio, tpe, grid"),
        ({"space": "paper"}, "the portfolio is searched in the wide space"),
        ({"sampler": "grid"}, "the wide space has no grid"),
        ({"sampler": "tpe", "only": ["mlp-wide"]}, "only names candidates of the portfolio"),
        ({"trials": 0}, "trials must be at least 1"),
    ],
)
def test_samplers_and_spaces_that_do_not_fit_are_refused(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        legnn.auto(small_data(), out=tmp_path / "auto", **options)
    assert not (tmp_path / "auto").exists()
