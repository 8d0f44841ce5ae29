"""Candidate folders as training leaves them, without training."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from legnn.automl import search
from legnn.automl.candidate_runs import CandidateFolder, CandidateOutcome, CandidateTask, train_candidate
from legnn.automl.search import Plan
from legnn.runs.task_server import Signals
from tests.named import named

from legnn.config import GraphFacts, Settings
from legnn.files import write_text
from legnn.runs.result import Result
from legnn.training import EpochLog
from legnn.typed_json import write_json

FACTS = GraphFacts(num_train=1000, num_classes=3, counts_features=False, has_label_edges=False)
ARRAYS = {name: np.full((4, 3), 1 / 3, dtype=np.float32) for name in ("val", "test")}


def begin(folder: CandidateFolder, values: Mapping[str, Any], curve: Sequence[float] = ()) -> None:
    """As a run that was cut short."""
    folder.path.mkdir(parents=True, exist_ok=True)
    write_text(
        folder.path / "settings.yaml", Settings(preset="simple", values=named(**values)).resolve(FACTS).to_yaml()
    )
    names = [one.name for one in fields(EpochLog)]
    numbers = [dict.fromkeys(names, 1) | {"epoch": k + 1, "val": {"accuracy": value}} for k, value in enumerate(curve)]
    lines = [json.dumps(one) + "\n" for one in numbers]
    write_text(folder.path / "metrics.jsonl", "".join(lines))


def finish(
    folder: CandidateFolder,
    values: Mapping[str, Any],
    curve: Sequence[float] = (0.5,),
    arrays: Mapping[str, np.ndarray] = ARRAYS,
) -> None:
    """As a candidate that came to its end."""
    begin(folder, values, curve)
    scores = {"accuracy": curve[-1]}
    result = Result(
        val=scores, test=scores, train_masked=None, best_epoch=1, epochs=len(curve),
        seconds=1.0, parameters=10, seed=0, device="cpu", precision="fp32", versions={}, notes=[],
    )  # fmt: skip
    write_json(folder.path / "result.json", result)
    folder.save_held_out(arrays)


def plan_in(folder, candidates: Mapping[str, Mapping[str, Any]], **more) -> Plan:
    return Plan(folder=folder, source="digits", facts=FACTS, num_val=500, candidates=candidates, **more)


def carry_out_here(function, next_task, jobs, *, on_outcome, on_poll, should_stop, **_) -> None:
    """Carries out tasks in this process, one after the other, and no local changes."""
    while not should_stop() and (task := next_task()) is not None and "~" not in task.name:
        on_poll([])
        on_outcome(task, function(task, Signals()))


@contextmanager
def without_processes(carry_out: Callable = carry_out_here) -> Iterator[None]:
    """Searches carry out their tasks in this process: a new one takes seconds to begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "carry_out", carry_out)
        yield


def train_all_but_gcn(task: CandidateTask, signals: Signals) -> CandidateOutcome:
    """Trains a candidate; one does not end and does not listen."""
    if task.name == "gcn-direct":
        time.sleep(600)
    return train_candidate(task, signals)
