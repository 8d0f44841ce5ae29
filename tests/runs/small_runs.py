"""Runs of a second, finished, cut short and with several seeds, of which tests change copies."""

from pathlib import Path

import pytest

import legnn

QUICK = {"epochs": 4, "hidden": 8, "preset": "simple", "checkpoint_seconds": 0.0}


def cut_short(data, folder: Path, **options) -> None:
    """Trains three epochs of a run, which then has a checkpoint."""
    done = []
    with pytest.raises(legnn.Interrupted):
        legnn.train(data, out=folder, on_epoch=done.append, should_stop=lambda: len(done) >= 2, **{**QUICK, **options})
