"""How far a run is, in a terminal and without one."""

import contextlib
import re
import time

import pytest
from tests.graphs import small_data
from tests.named import arguments, named
from tests.terminals import Terminal

import legnn
from legnn.runs import progress as module
from legnn.runs.progress import EpochProgress
from legnn.runs.session import start_run
from legnn.training import EpochLog

QUICK = {"epochs": 3, "hidden": 8}


@pytest.fixture(autouse=True)
def _size_of_the_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")


def log(epoch: int, epochs: int = 10) -> EpochLog:
    return EpochLog(epoch, epochs, 0.01, 1.5, 1.5, 0.0, None, {"accuracy": 0.25}, 1.4, None, None, None)


def test_nothing_is_shown_unless_asked(capsys):
    legnn.train(small_data(), **arguments(**QUICK))
    assert capsys.readouterr() == ("", "")


def test_a_short_run_without_a_terminal_prints_nothing(capsys):
    legnn.train(small_data(), **arguments(**QUICK), progress=True)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_lines_come_now_and_then_with_the_time_left(capsys):
    with EpochProgress(plain_seconds=0.05) as shown:
        for epoch in range(1, 9):
            time.sleep(0.03)
            shown.epoch(log(epoch, epochs=1000))
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) < 8
    assert all(line.startswith("training: epoch ") and "val accuracy 0.2500" in line for line in lines)
    assert "at most about " in lines[-1]
    assert lines[-1].endswith("left")


def test_a_long_stage_is_named_without_a_terminal_and_a_short_one_is_not(capsys):
    with EpochProgress(plain_seconds=0.05) as shown:
        shown.stage("reading the data")
        shown.stage("preparing and compiling")
        time.sleep(0.5)
        shown.stage("predicting")
    assert capsys.readouterr().err == "preparing and compiling …\n"


@pytest.mark.parametrize("several", [False, True])
def test_a_terminal_shows_every_epoch_that_takes_a_while(several):
    def wait(event: object) -> None:
        time.sleep(0.3)  # the line is drawn ten times a second

    with contextlib.redirect_stderr(Terminal()) as terminal:
        if several:
            legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=2, progress=True, on_event=wait)
            lines = [("seed-0", 1), ("seed-0", 3), ("seed-1", 1), ("seed-1", 3)]
        else:
            legnn.train(small_data(), **arguments(**QUICK), progress=True, on_epoch=wait)
            lines = [("training", 1), ("training", 2), ("training", 3)]
    shown = terminal.getvalue()
    places = [re.search(rf"{title} .*?epoch {epoch} ", shown).start() for title, epoch in lines]
    assert places == sorted(places)
    assert "predicting" in shown[places[-1] :]


def test_stages_and_epochs_of_a_run_are_reported_in_their_order(tmp_path):
    seen = []
    callbacks = module.Callbacks(lambda log: seen.append(log.epoch), lambda: False, on_stage=seen.append)
    graph = legnn.load(small_data())
    start_run(graph, legnn.Settings(values=named(**QUICK)).resolve(graph.facts()), tmp_path / "run", callbacks)
    assert seen == ["preparing and compiling", 1, 2, 3, "predicting"]


def test_the_line_of_a_terminal_moves():
    with contextlib.redirect_stderr(Terminal()), EpochProgress() as shown:
        shown.stage("reading the data")
        assert shown.tasks[0].total is None
        shown.epoch(log(4))
        assert (shown.tasks[0].total, shown.tasks[0].completed, shown.tasks[0].description) == (10, 4, "training")
        shown.stage("predicting")
        assert shown.tasks[0].total is None
        assert len(shown.tasks) == 1


@pytest.mark.parametrize("rank", ["0", "1"])
def test_one_of_several_processes_speaks(monkeypatch, rank):
    monkeypatch.setenv("RANK", rank)
    callbacks = module.Callbacks(lambda log: None, lambda: False)
    with module.follow(callbacks, visible=True) as found:
        assert (found is callbacks) == (rank == "1")
