"""Copies of small runs; a module with a fixture `runs` of its own gets copies of those."""

import shutil
from pathlib import Path

import pytest
from tests.graphs import small_data
from tests.named import arguments
from tests.runs.small_runs import QUICK, cut_short

import legnn


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    legnn.train(small_data(), **arguments(**QUICK), out=place / "finished")
    cut_short(small_data(), place / "cut")
    legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=2, out=place / "seeds")
    return place


@pytest.fixture
def finished(runs, tmp_path) -> Path:
    return shutil.copytree(runs / "finished", tmp_path / "finished")


@pytest.fixture
def cut(runs, tmp_path) -> Path:
    return shutil.copytree(runs / "cut", tmp_path / "cut")


@pytest.fixture
def seeds(runs, tmp_path) -> Path:
    return shutil.copytree(runs / "seeds", tmp_path / "seeds")
