"""The first time, a second process compiles kernels while the command imports PyTorch, if a core is idle."""

import os
import subprocess
import sys

import pytest

from legnn.cli import kernels


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The programs that are started, on two idle cores, with an empty cache."""
    found = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 4.0, 4.0), raising=False)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: found.append(command))
    return found


def test_a_process_compiles_the_first_time(started):
    kernels.compile_ahead()
    assert started == [[sys.executable, "-c", kernels.PROGRAM]]


def test_none_is_started_where_kernels_were_compiled(started, tmp_path):
    folder = tmp_path / "cache" / "attention_1"
    folder.mkdir(parents=True)
    (folder / "numba_kernels._score_gradient-98.py311.checked.nbi").touch()
    kernels.compile_ahead()
    assert started == []


@pytest.mark.parametrize("busy", [True, False])
def test_none_is_started_without_an_idle_core(started, monkeypatch, busy):
    if busy:
        monkeypatch.setattr(os, "getloadavg", lambda: (2.1, 0.0, 0.0))
    else:
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    kernels.compile_ahead()
    assert started == []


def test_none_is_started_where_numba_keeps_nothing_beside_the_source(started, monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(kernels, "FOLDER", tmp_path / "missing")
    kernels.compile_ahead()
    assert started == []
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    kernels.compile_ahead()
    assert len(started) == 1


def test_what_it_leaves_is_what_it_looks_for(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", kernels.PROGRAM], env=environment, check=True)
    assert any(tmp_path.glob(f"*/{kernels.COMPILED}"))
