"""Planned runs that share a process: each bit for bit what it is alone, through failures, kills and interruptions."""

import os
import signal
import time
import warnings
from pathlib import Path

import pytest
from tests.graphs import small_data, table_folder
from tests.runs.test_seed_turns import assert_same_run, gpu

from legnn.experiments.execution import Progress, train_missing
from legnn.experiments.planned import PlannedRun
from legnn.experiments.worker import train_planned
from legnn.runs import RunFolder

COMMON = {"epochs": 8, "hidden": 8, "dropout": 0.5, "input_dropout": 0.2, "as_train": True, "batch": "full"}
MIXED = [{}, {"precision": "bf16"}, {"threads": 2}, {"labels": "vanilla", "layers": 3}, {"batch": 16}]
"""Settings that differ in what a process has once (precision of products, threads), and one that shares no process."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return table_folder(tmp_path_factory.mktemp("data") / "small", small_data())


def planned(folder: Path, seed: int = 0, **given) -> PlannedRun:
    return PlannedRun.of(str(folder), "simple", {**COMMON, **given}, seed)


def train_in_one_process(runs: list[PlannedRun], out: Path, jobs: int = 4, **options) -> Progress:
    return train_missing(lambda: [run for run in runs if run.finished(out) is None], out, jobs, processes=1, **options)


def assert_all_as_alone(runs: list[PlannedRun], tmp_path: Path) -> None:
    for run in runs:
        assert train_planned(run, tmp_path / "alone").error is None
        assert_same_run(run.folder(tmp_path / "out"), run.folder(tmp_path / "alone"))


@pytest.mark.slow
def test_runs_of_mixed_settings_in_one_process_are_to_the_bit_what_they_are_alone(folder, tmp_path):
    runs = [planned(folder, seed, **given) for given in MIXED for seed in (0, 1)]
    progress = train_in_one_process(runs, tmp_path / "out")
    assert (progress.done, progress.failed) == (len(runs), [])
    assert_all_as_alone(runs, tmp_path)


@pytest.mark.slow
def test_runs_in_one_process_train_at_the_same_time_and_a_failure_stops_none(folder, tmp_path):
    long = {"epochs": 100_000, "patience": 100_000}
    bad = planned(folder, lr=1e30, norm="none")
    runs = [planned(folder, 0, **long), bad, planned(folder, 1, **long), planned(folder, 2)]
    metrics = [run.folder(tmp_path / "out") / "metrics.jsonl" for run in (runs[0], runs[2])]
    seen = []

    def look(progress: Progress) -> None:
        seen.append(progress.done == 1 and len(progress.failed) == 1 and all(path.is_file() for path in metrics))

    progress = train_in_one_process(runs, tmp_path / "out", on_progress=look, should_stop=lambda: any(seen))
    assert (progress.done, [outcome.run for outcome in progress.failed]) == (1, [bad])
    assert all(RunFolder(path.parent).load_checkpoint() is not None for path in metrics)


def children() -> list[int]:
    words = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in words if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.slow
def test_a_process_that_is_killed_costs_its_runs_nothing(folder, tmp_path):
    given = {"epochs": 150, "patience": 150, "checkpoint_seconds": 0.1}
    runs = [planned(folder, seed, **given) for seed in range(3)]
    metrics = [run.folder(tmp_path / "out") / "metrics.jsonl" for run in runs]
    killed = []

    def kill(progress: Progress) -> None:
        if not killed and all(path.is_file() and path.read_text().count("\n") > 20 for path in metrics):
            killed.extend(children())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    begin = time.monotonic()
    progress = train_in_one_process(runs, tmp_path / "out", on_progress=kill)
    assert len(killed) == 1, f"not killed in {time.monotonic() - begin:.1f} s"
    assert (progress.done, progress.failed) == (3, [])
    assert_all_as_alone(runs, tmp_path)


@gpu
def test_on_a_gpu_six_runs_in_one_process_are_to_the_bit_what_they_are_alone(folder, tmp_path):
    given = [{"backbone": name, "precision": precision} for name in ("gcn", "gat") for precision in ("tf32", "fp32")]
    given += [{"backbone": "sage", "precision": "bf16"}] * 2
    runs = [planned(folder, k, epochs=30, device="cuda", **one) for k, one in enumerate(given)]
    progress = train_in_one_process(runs, tmp_path / "out", jobs=6)
    assert (progress.done, progress.failed) == (6, [])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a step that is not captured
        assert_all_as_alone(runs, tmp_path)
