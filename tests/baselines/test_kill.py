"""`kill -9` loses nothing of any design."""

import subprocess
import sys
from pathlib import Path

import pytest

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
    tried = {design.model.get("architecture", "legnn") for design in DESIGNS.values()}
    assert set(ARCHITECTURES) <= tried
