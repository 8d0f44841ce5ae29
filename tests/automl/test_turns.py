"""Candidates that share a process: each to the bit what it is alone, paused and ended one by one."""

import time

import numpy as np
import pytest
from tests.graphs import small_data, table_folder
from tests.runs.test_seed_turns import assert_same_run

from legnn.automl.candidate_runs import CandidateFolder, CandidateTask, train_candidate
from legnn.runs.task_server import Signals
from legnn.runs.workers import carry_out
from legnn.training.sharing import finish

pytestmark = pytest.mark.slow
COMMON = {"hidden": 8, "epochs": 12, "patience": 12, "device": "cpu", "dropout": 0.5, "batch": "full"}
MIXED = {
    "mlp": {"architecture": "mlp"},
    "gcn": {"backbone": "gcn", "as_train": True},
    "bf16": {"backbone": "gcn", "precision": "bf16"},
    "gat": {"backbone": "gat", "heads": 2},
    "bad": {"backbone": "gcn", "dropout": 2},
    "smooth": {"architecture": "mlp", "postprocess": "correct_and_smooth"},
}
LONG = {"epochs": 1_000_000, "patience": 1_000_000}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> str:
    return str(table_folder(tmp_path_factory.mktemp("data") / "tables", small_data()))


def tasks_in(folder, tables, seconds: float = 600, **values) -> list[CandidateTask]:
    return [
        CandidateTask(name, folder / name, tables, {**COMMON, **given}, time.time() + seconds)
        for name, given in values.items()
    ]


def train_in_one_process(tasks: list[CandidateTask], **options) -> dict:
    waiting, outcomes = list(tasks), {}
    carry_out(
        train_candidate, lambda: waiting.pop(0) if waiting else None, 4, processes=1,
        on_outcome=lambda task, outcome: outcomes.update({task.name: outcome}), **options,
    )  # fmt: skip
    return outcomes


def test_candidates_in_one_process_are_to_the_bit_what_they_are_alone(tables, tmp_path):
    outcomes = train_in_one_process(tasks_in(tmp_path / "all", tables, **MIXED))
    assert {name for name, outcome in outcomes.items() if outcome.error is not None} == {"bad"}
    for task in tasks_in(tmp_path / "alone", tables, **MIXED):
        finish(train_candidate(task, Signals()))
        together, alone = CandidateFolder(tmp_path / "all" / task.name), CandidateFolder(task.folder)
        assert together.state == alone.state
        if task.name != "bad":
            assert_same_run(together.path, alone.path)
            held_out = alone.held_out()
            assert all(np.array_equal(held_out[name], p) for name, p in together.held_out().items())


def test_a_pause_ends_one_candidate_and_the_deadline_each_by_itself(tables, tmp_path):
    tasks = tasks_in(tmp_path, tables, paused={**MIXED["mlp"], **LONG}, late={**MIXED["gcn"], **LONG}, short={})
    begin = time.time()

    def pause(in_flight) -> None:
        for one in in_flight:
            if one.task.name == "paused" and len(CandidateFolder(one.task.folder).curve()) > 5:
                one.pause()

    late = tasks[1]._replace(deadline=begin + 7)
    outcomes = train_in_one_process([tasks[0], late, tasks[2]], on_poll=pause)
    assert {name: outcome.is_paused for name, outcome in outcomes.items()} == {
        "paused": True, "late": False, "short": False,
    }  # fmt: skip
    states = {name: CandidateFolder(tmp_path / name).state for name in outcomes}
    assert states == {"paused": "begun", "late": "finished", "short": "finished"}
    assert 7 <= time.time() - begin < 40
