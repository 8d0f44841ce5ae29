"""What the terminal shows of a search."""

import contextlib

from tests.terminals import Terminal

from legnn.automl.clock import Clock
from legnn.automl.search import Row
from legnn.cli.search_display import SHOWN, SearchProgress

ROWS = [
    Row("gcn-wide", "finished", 0.875, 120), Row("gat-wide", "training", 0.5, 20), Row("mlp-wide", "training", None, 0),
]  # fmt: skip


def test_without_a_terminal_there_is_a_line_now_and_then(tmp_path, capsys):
    clock = Clock(tmp_path / "time.json", 90)
    with SearchProgress() as progress:
        progress.show(ROWS, clock)
        progress.show(ROWS, clock)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("1 finished, 2 training; best so far 0.8750 (gcn-wide); ")
    assert line.endswith("left")


def test_before_the_first_candidate_the_line_says_so(tmp_path, capsys):
    with SearchProgress() as progress:
        progress.show([], Clock(tmp_path / "time.json", 90))
    assert capsys.readouterr().err.startswith("starting; ")


def test_the_live_leaderboard_shows_the_first_candidates(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    rows = [*ROWS, *(Row(f"more-{k}", "paused", 0.1, 20) for k in range(20))]
    with contextlib.redirect_stderr(Terminal()) as terminal, SearchProgress() as progress:
        progress.show(rows, Clock(tmp_path / "time.json", 90))
        shown = terminal.getvalue()
    assert [row.name for row in rows if row.name in shown] == [row.name for row in rows[:SHOWN]]
    assert "1 finished, 2 training, 20 paused" in shown
