"""What the terminal shows of searches: the live leaderboard of `auto`, the trials of `tune`, and what they found."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from legnn.cli.display import print_line, show_result
from legnn.config.duration import PLAIN_SECONDS, duration
from legnn.errors import plural

if TYPE_CHECKING:
    from legnn.automl.clock import Clock
    from legnn.automl.search import Row
    from legnn.automl.tune import Progress as TuneState
    from legnn.automl.tune import TuneResult

SHOWN = 8
"""Candidates of the live leaderboard."""

_out = Console(markup=False, emoji=False)


class SearchProgress:
    """A live leaderboard; where standard error is no terminal, a line now and then."""

    def __init__(self) -> None:
        self._is_plain = not sys.stderr.isatty()
        self._console = Console(stderr=True, markup=False, emoji=False)
        self._live = Live(console=self._console, transient=True, auto_refresh=False)
        self._last = 0.0

    def __enter__(self) -> SearchProgress:
        if not self._is_plain:
            self._live.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if not self._is_plain:
            self._live.stop()

    def show(self, rows: Sequence[Row], clock: Clock) -> None:
        """Shows the candidates so far, the best first."""
        words = f"{duration(clock.used)} used, {duration(max(clock.left, 0.0))} left"
        if not self._is_plain:
            self._live.update(Group(_table(rows), Text(words)), refresh=True)
        elif time.monotonic() - self._last > PLAIN_SECONDS:
            self._last = time.monotonic()
            leader = next((f"; best so far {row.val:.4f} ({row.name})" for row in rows if row.val is not None), "")
            self._console.print(f"{_counts(rows)}{leader}; {words}", highlight=False, soft_wrap=True)


def _counts(rows: Sequence[Row]) -> str:
    states = [row.state for row in rows]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "starting"


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title=_counts(rows))
    for header in ("candidate", "state", "validation", "epochs"):
        table.add_column(header, justify="left" if header in ("candidate", "state") else "right")
    for row in rows[:SHOWN]:
        table.add_row(row.name, row.state, "" if row.val is None else f"{row.val:.4f}", f"{row.epochs:,}")
    return table


def show_leaderboard(path: Path) -> None:
    """Prints the leaderboard of a finished search: its first rows, and all members."""
    import pandas as pd

    found = pd.read_csv(path, keep_default_na=False, na_values={"test": [""]})
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title="by validation accuracy; test chooses nothing")
    for header in ("candidate", "", "validation", "test", "seconds", "weight"):
        table.add_column(header, justify="left" if header in ("candidate", "") else "right")
    shown = found[(found.index < SHOWN) | (found["weight"] > 0)]
    for row in shown.to_dict("records"):
        smooth = "C&S" if row["postprocess"] == "correct_and_smooth" else ""
        weight = f"{row['weight']:.2f}" if row["weight"] > 0 else ""
        test = "" if pd.isna(row["test"]) else f"{row['test']:.4f}"  # of data without test nodes
        table.add_row(row["name"], smooth, f"{row['val']:.4f}", test, f"{row['seconds']:.1f}", weight)
    _out.print(table)
    if len(shown) < len(found):
        _out.print(f"{len(found) - len(shown)} more in {path}", soft_wrap=True, highlight=False)


class TrialProgress(Progress):
    """A progress line over the trials of a search; where standard error is no terminal, a line now and then."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
        self._is_plain = not sys.stderr.isatty()
        console = Console(stderr=True, markup=False, emoji=False)
        super().__init__(*columns, TimeElapsedColumn(), console=console, disable=self._is_plain, transient=True)
        self._task: TaskID | None = None
        self._last = time.monotonic()

    def show(self, now: TuneState) -> None:
        """Moves the line."""
        words = f"trial {now.trial + 1}" + ("" if now.trials is None else f" of {now.trials}")
        words += "" if now.best is None else f", best val {now.best:.4f}"
        words += "" if now.seconds_left is None else f", {duration(now.seconds_left)} left"
        if self._is_plain:
            if time.monotonic() - self._last > PLAIN_SECONDS:
                self._last = time.monotonic()
                self.console.print(words, highlight=False)
            return
        if now.log is not None and now.log.val:
            words += f", epoch {now.log.epoch} val {now.log.val['accuracy']:.4f}"
        if self._task is None:
            self._task = self.add_task("tuning", total=now.trials, words="")
        self.update(self._task, completed=now.trial, words=words)


def show_tuned(found: TuneResult) -> None:
    """Prints how the trials ended, the settings of the best, and its scores."""
    ended = Counter(one.state for one in found.trials)
    print_line(f"{plural(len(found.trials), 'trial')}: " + ", ".join(f"{ended[state]} {state}" for state in ended))
    print_line(f"best on validation: trial {found.best.number}, accuracy {found.best.val:.4f}")
    table = Table("setting", "value", box=box.SIMPLE_HEAD, padding=(0, 1))
    for name, value in found.best.chosen.items():
        table.add_row(name, ("no", "yes")[value] if isinstance(value, bool) else str(value))
    _out.print(table)
    show_result(found.result, found.folder / "best.yaml")
