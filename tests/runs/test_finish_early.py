"""A run that is told to finish ends as if that had been its last epoch; one that is told to stop does not."""

import pytest
from tests.graphs import small_data
from tests.named import named

import legnn
from legnn.config import Settings
from legnn.errors import Interrupted
from legnn.runs.graphs import load_new
from legnn.runs.progress import Callbacks
from legnn.runs.session import start_run

QUICK = {"epochs": 50, "hidden": 8, "patience": 50}


def start(out, *, stops: bool = False):
    """Trains a run that is told to finish after five epochs, and perhaps to stop as well."""
    seen = []
    graph, settings = load_new(Settings(values=named(**QUICK)), small_data())
    callbacks = Callbacks(seen.append, lambda: stops and len(seen) == 5, lambda: len(seen) == 5)
    return start_run(graph, settings.resolve(graph.facts()), out, callbacks)


def test_a_run_that_should_finish_is_a_finished_run_of_fewer_epochs(tmp_path):
    run = start(tmp_path / "cut")
    assert run.result.epochs == 5
    assert run.result.best_epoch <= 5
    again = legnn.open(tmp_path / "cut")
    assert again.result == run.result
    assert not (tmp_path / "cut" / "checkpoint.safetensors").exists()
    assert legnn.resume(tmp_path / "cut", small_data()).result.epochs == 5, "it is not continued"


def test_a_run_that_should_stop_and_finish_can_continue(tmp_path):
    with pytest.raises(Interrupted):
        start(tmp_path / "cut", stops=True)
    assert legnn.resume(tmp_path / "cut", small_data()).result.epochs == 50
