"""Every Triton kernel is code that its compiler takes, also where there is no GPU to run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
FILES = ["tests/ops", "tests/graph/test_sampling.py"]
CALLING = "(triton or gpu or test_gather) and not (translated or random or derivatives)"
"""Not this test itself, nor those that launch the same kernels on other graphs."""
NOT_REACHED = {"legnn.ops.sample.gpu_drawing._copy"}
"""Kernels that are launched after a result was read, and so not where nothing is computed."""


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU kernels are compiled in all tests")
def test_every_kernel_is_translated_for_a_gpu(tmp_path):
    place = tmp_path / "found.json"
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    words = [
        "-m",
        "pytest",
        "-p",
        "tests.ops.compile_only",
        "-p",
        "no:cacheprovider",
        "-n0",
        "-q",
        "-k",
        CALLING,
        *FILES,
    ]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**environment, "COMPILE_ONLY": str(place)},
        capture_output=True,
        text=True,
    )
    assert place.exists(), done.stderr
    found = json.loads(place.read_text())
    assert found["errors"] == {}
    assert set(found["kernels"]) - NOT_REACHED <= set(found["compiled"])
    assert len(found["kernels"]) >= 15
