"""How far a run is, in a terminal and without one."""

import io
import time

import pytest
from tests.graphs import small_data

import legnn
from legnn.runs import progress as module
from legnn.runs.progress import EpochProgress
from legnn.training import EpochLog

QUICK = {"epochs": 3, "hidden": 8}


def log(epoch: int, epochs: int = 10) -> EpochLog:
    return EpochLog(epoch, epochs, 0.01, 1.5, 1.5, 0.0, None, 0.25, 0.2, 1.4, None, None, None)


def test_nothing_is_shown_unless_asked(capsys):
    legnn.train(small_data(), **QUICK)
    assert capsys.readouterr() == ("", "")


def test_a_short_run_without_a_terminal_prints_nothing(capsys):
    legnn.train(small_data(), progress=True, **QUICK)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_lines_come_now_and_then_with_the_time_left(capsys, monkeypatch):
    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    with EpochProgress() as shown:
        shown.run("seed 3")
        for epoch in range(1, 9):
            shown.epoch(log(epoch))
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) < 8
    assert all(line.startswith("seed 3: epoch ") and "val 0.2500" in line for line in lines)
    assert "at most about " in lines[-1]
    assert lines[-1].endswith("left")


def test_a_long_stage_is_named_without_a_terminal_and_a_short_one_is_not(capsys, monkeypatch):
    monkeypatch.setattr(module, "PLAIN_SECONDS", 0.05)
    with EpochProgress() as shown:
        shown.stage("reading the data")
        shown.stage("preparing and compiling")
        time.sleep(0.5)
        shown.stage("predicting")
    assert capsys.readouterr().err == "preparing and compiling …\n"


@pytest.mark.parametrize("several", [False, True])
def test_a_terminal_shows_stages_and_epochs(monkeypatch, several):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    monkeypatch.setattr(EpochProgress, "_show", lambda self, title, **about: seen.append((title, about["completed"])))
    if several:
        legnn.train_seeds(small_data(), seeds=2, progress=True, **QUICK)
        assert {("seed 0", 1), ("seed 1", 3), ("predicting", 0)} <= set(seen)
    else:
        legnn.train(small_data(), progress=True, **QUICK)
        before = [("reading the data", 0), ("preparing and compiling", 0)]
        assert seen == [*before, *(("training", epoch) for epoch in (1, 2, 3)), ("predicting", 0)]


def test_the_line_of_a_terminal_moves(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with EpochProgress() as shown:
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
