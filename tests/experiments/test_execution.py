"""Runs in processes: only the missing, several at a time, through failures, kills and interruptions."""

import json
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from tests.experiments.training import train_planned
from tests.graphs import small_data, table_folder
from tests.named import named
from tests.runs.small_runs import EVERYTHING, assert_same_run, gpu

from legnn.errors import InputError
from legnn.experiments.plan import train_missing
from legnn.experiments.planned import PlannedRun
from legnn.sweep import LocalExecutor, Outcome, SweepProgress

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    return table_folder(tmp_path / "small", small_data())


def planned(folder: Path, seed: int = 0, **given) -> PlannedRun:
    return PlannedRun.of(str(folder), "simple", named(**{"epochs": 2, "hidden": 8} | given), seed)


def missing_of(runs: list[PlannedRun], out: Path):
    return lambda: [run for run in runs if run.finished(out) is None]


def train(runs: list[PlannedRun], out: Path, jobs: int) -> list[Outcome]:
    with LocalExecutor(jobs) as executor:
        return train_missing(missing_of(runs, out), out, executor, display=SweepProgress())


def test_what_is_missing_is_trained_and_one_failure_does_not_stop_the_rest(folder, tmp_path):
    out = tmp_path / "out"
    bad = planned(folder, layers=2, fanout="3,3,3", batch=4)
    runs = [planned(folder, seed=0), bad, planned(folder, seed=1)]
    outcomes = train(runs, out, 2)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    assert len(outcomes) == 3
    assert [outcome.trial for outcome in failed] == [bad.name]
    assert "fanout" in failed[0].error
    assert bad.has_failed(out)
    assert missing_of(runs, out)() == [bad]
    before = (runs[0].folder(out) / "result.json").stat().st_mtime_ns
    assert train(runs[:1], out, 1) == []
    assert (runs[0].folder(out) / "result.json").stat().st_mtime_ns == before


MIXED = [
    {},
    {"train.precision": "bf16"},
    {"train.threads": 2},
    {"model.labels": "vanilla", "model.layers": 3},
    {"train.batch": 16},
]
"""Settings that differ in what a process has once: precision of products, threads."""


def assert_all_as_alone(runs: list[PlannedRun], tmp_path: Path) -> None:
    for run in runs:
        assert train_planned(run, tmp_path / "alone").state == "finished"
        assert_same_run(run.folder(tmp_path / "out"), run.folder(tmp_path / "alone"))


@pytest.mark.slow
def test_runs_of_one_process_are_to_the_bit_what_they_are_alone(folder, tmp_path):
    runs = [planned(folder, seed, **{**EVERYTHING, **given}) for given in MIXED for seed in (0, 1)]
    outcomes = train(runs, tmp_path / "out", 1)
    assert [outcome.state for outcome in outcomes] == ["finished"] * len(runs)
    assert_all_as_alone(runs, tmp_path)


@gpu
def test_on_a_gpu_runs_of_one_process_are_to_the_bit_what_they_are_alone(folder, tmp_path):
    given = [
        {"model.backbone": name, "train.precision": precision}
        for name in ("gcn", "gat")
        for precision in ("tf32", "fp32")
    ]
    given += [{"model.backbone": "sage", "train.precision": "bf16"}] * 2
    runs = [
        planned(folder, k, **{**EVERYTHING, **one, "train.epochs": 30}, device="cuda") for k, one in enumerate(given)
    ]
    outcomes = train(runs, tmp_path / "out", 1)
    assert [outcome.state for outcome in outcomes] == ["finished"] * 6
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a step that is not captured
        assert_all_as_alone(runs, tmp_path)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may stay listed until its parent asks for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_busy(pid: int) -> bool:
    return b"legnn.sweep.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_no_jobs_are_refused():
    with pytest.raises(InputError, match="jobs must be at least 1"):
        LocalExecutor(0)


def test_ctrl_c_keeps_what_was_done_and_the_same_command_goes_on(folder, tmp_path):
    """A real process is interrupted; the second call trains the rest, with the results of an uninterrupted one."""
    words = [sys.executable, "-m", "legnn", "reproduce", "label-usage", "--data", str(folder), "--backbone", "gcn"]
    words += [
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--set",
        "train.epochs=60",
        "--set",
        "train.patience=60",
        "--set",
        "model.hidden=8",
    ]
    words += ["--set", "train.checkpoint_seconds=0"]

    def start() -> subprocess.Popen:
        options = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([*words, "--out", "out"], cwd=tmp_path, **options)

    first = start()
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("out/small/*/seed-0/checkpoint.safetensors")):
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 130
    assert re.search(r"interrupted; continue with: legnn reproduce label-usage", err)
    done = list(tmp_path.glob("out/small/*/seed-0/result.json"))
    assert len(done) < 4
    second = start()
    out, err = second.communicate(timeout=300)
    assert second.returncode == 0, err
    assert "Methods of using labels" in out
    for labels in ("vanilla", "concat", "addition", "enhanced"):
        given = {
            "train.epochs": 60,
            "train.patience": 60,
            "model.hidden": 8,
            "train.checkpoint_seconds": 0.0,
            "model.labels": labels,
        }
        straight = planned(folder, backbone="gcn", **given)
        assert train_planned(straight, tmp_path / "straight").state == "finished"
        found, expected = (
            json.loads((straight.folder(tmp_path / name) / "result.json").read_text()) for name in ("out", "straight")
        )
        assert found["test"] == expected["test"]
        assert found["best_epoch"] == expected["best_epoch"]


def test_after_kill_9_no_process_goes_on_training(folder, tmp_path):
    words = [sys.executable, "-m", "legnn", "reproduce", "label-usage", "--data", str(folder), "--backbone", "gcn"]
    words += [
        "--seeds",
        "1",
        "--jobs",
        "2",
        "--set",
        "train.epochs=100000",
        "--set",
        "train.patience=100000",
        "--set",
        "model.hidden=8",
    ]
    first = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("runs/reproduce/small/*/seed-0/metrics.jsonl"))) < 2:
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = [pid for pid in _children(first.pid) if _is_busy(pid)]
    assert len(children) == 2
    first.kill()
    first.wait()
    while any(_is_alive(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(list(tmp_path.glob("runs/reproduce/small/*/seed-0/checkpoint.safetensors"))) == 2
