"""The command for a machine with a GPU runs without one, at toy size, and continues from its results."""

import json

import pytest

from benchmarks import gpu


@pytest.mark.slow
@pytest.mark.skipif(gpu.ON_GPU, reason="would measure for an hour")
def test_every_part_runs_on_the_cpu_and_no_part_runs_twice(tmp_path, capsys):
    out = tmp_path / "gpu.json"
    lines = gpu.main(["--out", str(out), "--part", "tests-training", "cora", "mag", "auto"])
    assert "no GPU here" in capsys.readouterr().err
    assert lines[-1] == "no verdict: the CPU ran everything at toy size"
    (measured,) = json.loads(out.read_text()).values()
    assert measured["tests-training"] == {"tests-training, failed": 0}
    assert measured["auto"]["auto cora, candidates"] >= 1
    for name in ("cora tf32 gcn, ms", "cora tf32 gat, ms", "mag epoch, s"):
        assert any(name in line for line in lines)
    (subject,) = json.loads(out.read_text())
    out.write_text(json.dumps({subject: {part: {} for part in gpu.PARTS} | measured}))
    assert gpu.main(["--out", str(out)]) == lines, "every part is in the file"
    assert "…" not in capsys.readouterr().err


def test_a_figure_above_its_limit_is_a_miss():
    lines = gpu.table({"mag epoch, s": 2.0, "cora tf32 gat, ms": 1.5, "auto cora, candidates": 9}, on_gpu=True)
    assert "| cora tf32 gat, ms | 0.93 | 1.5 | 1.6 | ok |" in lines
    assert "| mag epoch, s | 1.91 | 2 | 1.95 | miss by 0.05 |" in lines
    assert lines[-1].startswith("verdict: 1 of 3 figures miss their limit; not measured yet: arxiv tf32 gcn, ms")
