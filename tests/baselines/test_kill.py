"""`kill -9` loses nothing of any design."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.graphs import small_data, table_folder
from tests.named import arguments, named
from tests.runs.test_resume import assert_same_run, start, wait_for_lines

import legnn
from legnn.baselines import ARCHITECTURES
from legnn.config.designs import DESIGNS

HALVES = [list(DESIGNS)[::2], list(DESIGNS)[1::2]]


@pytest.mark.slow
@pytest.mark.parametrize("names", HALVES, ids=["one half", "other half"])
def test_every_design_that_is_killed_resumes_bit_for_bit(tmp_path, names):
    done = subprocess.run(
        [sys.executable, "-m", "tests.baselines.killed", tmp_path, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ended = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert ended == {name: ["0", "-9", "0"] for name in names}, done.stdout
    for name in names:
        whole, cut = (Path(tmp_path / name / run) for run in ("whole", "cut"))
        for file in ("weights.safetensors", "metrics.jsonl", "predictions.parquet"):
            assert (whole / file).read_bytes() == (cut / file).read_bytes(), (name, file)


def test_every_architecture_is_one_of_the_designs():
    tried = {design.model.get("model.architecture", "legnn") for design in DESIGNS.values()}
    assert set(ARCHITECTURES) <= tried


EPOCHS = 80
OPTIONS = {"hidden": 8, "layers": 2, "epochs": EPOCHS, "patience": EPOCHS, "checkpoint_seconds": 0}
PEERS = {
    "staged": {"architecture": "unimp", "batch": 16, "fanout": "3"},
    "whole graph": {"architecture": "pyg_gcn"},
}


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS)
def test_a_run_killed_with_kill_9_goes_on_bit_for_bit(tmp_path, peer, monkeypatch):
    # as many threads in the process that is killed as here
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    tables, given = table_folder(tmp_path / "tables", small_data(60)), OPTIONS | PEERS[peer]
    words = [word for name, value in named(**given).items() for word in ("--set", f"{name}={value}")]
    process = start("train", str(tables), *words, "--out", "cut", cwd=tmp_path)
    wait_for_lines(process, tmp_path / "cut" / "metrics.jsonl", 3)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "cut" / "result.json").exists()
    legnn.resume(tmp_path / "cut")
    legnn.train(tables, **arguments(**given), out=tmp_path / "whole")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
