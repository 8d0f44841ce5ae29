"""Runs of a second, finished, cut short and with several seeds, of which tests change copies."""

from pathlib import Path

import pytest
import torch
from tests.named import arguments

import legnn
from legnn.runs import RunFolder

EVERYTHING = {"epochs": 8, "hidden": 8, "dropout": 0.5, "input_dropout": 0.2, "as_train": True, "batch": "full"}
"""Settings of a run that draws all the numbers that a run draws."""
QUICK = {"epochs": 4, "hidden": 8, "preset": "simple", "checkpoint_seconds": 0.0}


def cut_short(data, folder: Path, **options) -> None:
    """Trains three epochs of a run, which then has a checkpoint."""
    done = []
    with pytest.raises(legnn.Interrupted):
        legnn.train(
            data,
            **arguments(**{**QUICK, **options}),
            out=folder,
            on_epoch=done.append,
            should_stop=lambda: len(done) >= 2,
        )


def gpu(test):
    """Needs a CUDA device."""
    return pytest.mark.gpu(pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")(test))


def assert_same_run(one: Path, other: Path) -> None:
    """Compares weights, predictions and metrics of two run folders to the bit."""
    weights, others = RunFolder(one).weights(), RunFolder(other).weights()
    assert weights.keys() == others.keys()
    assert [name for name in weights if not torch.equal(weights[name], others[name])] == []
    assert RunFolder(one).predictions().equals(RunFolder(other).predictions())
    assert RunFolder(one).logs() == RunFolder(other).logs()
