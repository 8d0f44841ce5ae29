"""The command `tune`."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.cli.test_cli import command, refused
from tests.graphs import small_data, table_folder

__all__ = ["command"]
pytest.importorskip("optuna")

QUICK = ("--set", "model.architecture=mlp", "--epochs", "3", "--hidden", "8", "--no-as-train")


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


def press_ctrl_c_when(path: Path) -> None:
    """Sends this process the signal of Ctrl-C as soon as there is such a file."""

    def press() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if path.is_file():
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.01)

    threading.Thread(target=press, daemon=True).start()


def test_ctrl_c_says_how_to_continue(command, tables):
    press_ctrl_c_when(Path("search/trials/0/settings.yaml").absolute())
    long = (
        "--set",
        "model.architecture=mlp",
        "--no-as-train",
        "--hidden",
        "8",
        "--epochs",
        "20000",
        "--set",
        "train.patience=20000",
    )
    done = command("tune", tables, "--trials", 2, "--out", "search", *long)
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
