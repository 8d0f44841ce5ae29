"""One candidate in a worker: how it ends, and what its folder says of it."""

import time

import numpy as np
import pytest
from tests.backbones import registered
from tests.graphs import small_data, table_folder
from torch_geometric.nn import SAGEConv

from legnn.automl.candidate_runs import CandidateFolder, CandidateTask, train_candidate
from legnn.nn import lifted
from legnn.runs.task_server import Signals

VALUES = {
    "model.architecture": "mlp",
    "model.hidden": 8,
    "train.epochs": 30,
    "train.patience": 30,
    "train.device": "cpu",
}


class Asked(Signals):
    """Signals of a parent that asks for a pause after some epochs."""

    def __init__(self, after: float = float("inf")) -> None:
        super().__init__()
        self._left = after

    def should_pause(self) -> bool:
        self._left -= 1
        return self._left <= 0


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> str:
    return str(table_folder(tmp_path_factory.mktemp("data") / "tables", small_data()))


@pytest.fixture
def task(tables, tmp_path) -> CandidateTask:
    return CandidateTask("mlp", tmp_path / "mlp", tables, VALUES, time.time() + 600)


def test_a_finished_candidate_keeps_what_it_predicts_for_held_out_nodes(task):
    outcome = train_candidate(task, Asked())
    folder = CandidateFolder(task.folder)
    assert (outcome.error, outcome.is_paused) == (None, False)
    assert 0 < outcome.predict_seconds < outcome.seconds
    assert folder.state == "finished"
    found = folder.held_out()
    data = small_data()
    assert {name: p.shape for name, p in found.items()} == {
        split + suffix: (int(data[f"{split}_mask"].sum()), 3) for split in ("val", "test") for suffix in ("", "_smooth")
    }
    accuracy = (found["val"].argmax(1) == data.y[data.val_mask].numpy()).mean()
    assert accuracy == pytest.approx(folder.run.result().val["accuracy"])
    for p in found.values():
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)


def test_a_curve_is_the_best_validation_accuracy_so_far(task):
    train_candidate(task, Asked())
    folder = CandidateFolder(task.folder)
    curve = folder.curve()
    assert len(curve) == folder.run.result().epochs
    assert curve == sorted(curve)
    assert curve[-1] == max(log["val"]["accuracy"] for log in folder.run.logs())
    assert CandidateFolder(task.folder.with_name("none")).curve() == []


def test_a_paused_candidate_continues_to_what_it_would_have_been(task, tmp_path):
    outcome = train_candidate(task, Asked(after=5))
    folder = CandidateFolder(task.folder)
    assert outcome.is_paused
    assert (folder.state, len(folder.curve())) == ("begun", 5)
    train_candidate(task, Asked())
    train_candidate(task._replace(folder=tmp_path / "whole"), Asked())
    whole = CandidateFolder(tmp_path / "whole")
    assert folder.curve() == whole.curve()
    for name, p in whole.held_out().items():
        np.testing.assert_array_equal(folder.held_out()[name], p)


def test_a_pause_during_the_predictions_comes_too_late(task):
    assert not train_candidate(task, Asked(after=31)).is_paused
    assert CandidateFolder(task.folder).state == "finished"


def test_a_candidate_whose_deadline_has_come_ends_as_a_finished_run(task):
    outcome = train_candidate(task._replace(deadline=time.time() - 1), Asked())
    folder = CandidateFolder(task.folder)
    assert not outcome.is_paused
    assert (folder.state, len(folder.curve())) == ("finished", 1)


def test_settings_that_cannot_be_trained_are_kept_with_the_reason(task):
    outcome = train_candidate(task._replace(values={**VALUES, "model.dropout": 2}), Asked())
    folder = CandidateFolder(task.folder)
    assert folder.state == "failed"
    assert folder.failure() == outcome.error
    assert "dropout must be" in outcome.error


class Failing(SAGEConv):
    """A layer that breaks the device."""

    def forward(self, *_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered\nCompile with …")


def test_an_unexpected_error_ends_the_process_and_its_reason_is_kept(task):
    values = {"model.backbone": "failing", "model.hidden": 8, "train.epochs": 3, "train.device": "cpu"}
    with registered("failing", lifted(lambda settings, both, out: Failing(both, out))), pytest.raises(SystemExit):
        train_candidate(task._replace(values=values), Asked())
    assert CandidateFolder(task.folder).failure() == "RuntimeError: CUDA error: device-side assert triggered"
