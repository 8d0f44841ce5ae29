"""A run of another model that was killed goes on bit for bit, staged or not."""

import signal

import pytest
from tests.graphs import small_data, table_folder
from tests.runs.test_resume import assert_same_run, start, wait_for_lines

import legnn

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
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    process = start("train", str(tables), *words, "--out", "cut", cwd=tmp_path)
    wait_for_lines(process, tmp_path / "cut" / "metrics.jsonl", 3)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "cut" / "result.json").exists()
    legnn.resume(tmp_path / "cut")
    legnn.train(tables, out=tmp_path / "whole", **given)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
