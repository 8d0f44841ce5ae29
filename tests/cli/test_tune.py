"""The command `tune`."""

import pytest
from tests.cli.test_cli import command, refused
from tests.graphs import small_data, table_folder

from legnn.errors import Interrupted

__all__ = ["command"]
pytest.importorskip("optuna")

QUICK = ("--architecture", "mlp", "--epochs", "3", "--hidden", "8", "--no-as-train")


@pytest.fixture
def tables(tmp_path):
    return table_folder(tmp_path / "tables", small_data())


def test_tune_prints_the_best_settings_and_best_yaml_repeats_them(command, tables, tmp_path):
    done = command("tune", tables, "--trials", 3, "--out", "search", "--budget", "10m", *QUICK)
    assert done.code == 0, done.err
    assert "3 trials: 3 complete" in done.out
    assert "best on validation: trial" in done.out
    assert "weight_decay" in done.out
    assert done.out.strip().endswith("search/best.yaml")
    again = command("train", "--config", "search/best.yaml", "--out", "again")
    assert again.code == 0, again.err
    (row,) = [line for line in done.out.splitlines() if line.startswith("│ validation")]
    assert row in again.out


def test_the_same_command_finds_its_folder_and_trains_nothing_new(command, tables, tmp_path):
    first = command("tune", tables, "--trials", 2, *QUICK)
    second = command("tune", tables, "--trials", 2, *QUICK)
    assert second.out == first.out
    assert (tmp_path / "here" / "runs" / "tune-tables" / "trials.csv").is_file()


def test_ctrl_c_says_how_to_continue(command, tables, monkeypatch):
    from legnn.automl import trial_runs as module

    def stop(graph, settings, out, callbacks):
        raise Interrupted(1, out)

    monkeypatch.setattr(module, "start_or_continue", stop)
    done = command("tune", tables, "--trials", 2, "--out", "search", *QUICK)
    assert done.code == 130
    assert f"continue with: legnn tune {tables} --trials 2 --out search" in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--budget", "soon"), "budget must be a time above 0"),
        (("--space", "wide"), "space must be full or paper"),
        (("--trials", "0"), "trials must be above 0"),
        (("--dropout", "2"), "dropout must be"),
        (("--preset", "recomended"), "did you mean 'recommended'"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(command, tables, tmp_path, options, words):
    refused(command("tune", tables, *options), words)
    assert list((tmp_path / "here").iterdir()) == []
