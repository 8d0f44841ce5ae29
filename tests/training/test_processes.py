"""Several processes train one model together, over gloo; one that dies is started again and the run goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.graphs import small_data, table_folder
from tests.runs.test_resume import assert_same_run
from tests.training.two_processes import measured

from legnn.training import Ranks

ROOT = Path(__file__).parents[2]


def torchrun(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]


def environment() -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def run(command: list[str], where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=where, env=environment(), capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> list[dict[str, torch.Tensor]]:
    folder = tmp_path_factory.mktemp("two")
    command = torchrun("-m", "tests.training.two_processes", str(folder))
    done = run(command, ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    return [torch.load(folder / f"rank-{rank}-of-2.pt", weights_only=True) for rank in (0, 1)]


@pytest.mark.slow
def test_two_processes_with_the_same_batch_have_the_gradients_of_one(two):
    alone = measured(Ranks())
    assert two[0].keys() == alone.keys()
    steps = [name for name in alone if " step " in name]
    assert len(steps) > 1000
    for name, value in alone.items():
        if "batch norm" in name:
            # each process takes the statistics of its share
            continue
        torch.testing.assert_close(
            two[0][name].double(),
            value.double(),
            rtol=1e-3,
            atol=2e-6,
            equal_nan=True,
            msg=lambda m, n=name: f"{n}: {m}",
        )


@pytest.mark.slow
def test_all_processes_know_the_same(two):
    for name, value in two[0].items():
        assert torch.equal(value, two[1][name]) or (value.isnan().all() and two[1][name].isnan().all()), name


OPTIONS = [
    "--batch",
    "4",
    "--set",
    "train.fanout=3",
    "--layers",
    "2",
    "--hidden",
    "8",
    "--as-train",
    "--set",
    "self_training.pseudo_label_threshold=0.4",
]


def train(folder: Path, data: Path, *more: str) -> list[str]:
    # a checkpoint after every epoch
    return [
        "-m",
        "legnn",
        "train",
        str(data),
        "--out",
        str(folder),
        "--set",
        "train.checkpoint_seconds=0",
        *OPTIONS,
        *more,
    ]


@pytest.mark.slow
def test_a_process_that_is_killed_is_started_again_and_the_run_is_the_same_to_the_bit(tmp_path):
    data = table_folder(tmp_path / "data", small_data(60))
    epochs = ("--epochs", "20", "--set", "train.patience=20")
    whole = run(torchrun(*train(tmp_path / "whole", data, *epochs)), tmp_path)
    assert whole.returncode == 0, whole.stderr[-3000:]

    start = torchrun("--max-restarts", "2", *train(tmp_path / "cut", data, *epochs))
    with subprocess.Popen(start, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        worker = wait_for_worker(process.pid, tmp_path / "cut")
        os.kill(worker, signal.SIGKILL)
        _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said[-3000:]
    assert "exitcode: -9" in said
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    epochs_seen = [json.loads(line)["epoch"] for line in (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()]
    assert epochs_seen == list(range(1, 21))


def wait_for_worker(parent: int, folder: Path) -> int:
    """The second process, once the run has a checkpoint and some epochs are still to come."""
    for _ in range(10_000):
        journal = folder / "metrics.jsonl"
        if (folder / "checkpoint.safetensors").is_file() and len(journal.read_text().splitlines()) > 3:
            for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
                if "LOCAL_RANK=1" in Path(f"/proc/{child}/environ").read_text().split("\0"):
                    assert not (folder / "result.json").exists()
                    return int(child)
        time.sleep(0.02)
    raise AssertionError("the run did not get under way")


MISTAKES = {
    "several processes need a number, or `train.batch=auto` (--batch)": ["--batch", "full", "--out", "run"],
    "give `seed`, not `seeds`": ["--batch", "4", "--seeds", "3", "--out", "run"],
    "give --out under torchrun": ["--batch", "8"],
}


@pytest.mark.slow
def test_a_mistake_is_one_sentence_of_the_first_process(tmp_path):
    data = table_folder(tmp_path / "data", small_data())
    given = [["train", str(data), "--layers", "2", *options] for options in MISTAKES.values()]
    done = run(torchrun("-m", "tests.training.mistakes", json.dumps(given)), tmp_path)
    assert "exitcode  : 2" in done.stderr, done.stderr[-3000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("legnn: ")]
    assert len(lines) == len(MISTAKES)
    for line, words in zip(lines, MISTAKES, strict=True):
        assert words in line
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
