"""Output to the terminal: tables, notes, and a progress line over the epochs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from legnn.data import Statistics
    from legnn.runs import MeanStd, Result, Summary
    from legnn.training import EpochLog

# names in the user's data may contain brackets, which are not markup
_out = Console(markup=False, emoji=False)
_err = Console(stderr=True, markup=False, emoji=False)


def show_result(result: Result, folder: Path) -> None:
    """Prints the scores of one run."""
    _show_scores(result, "{:.4f}".format, title=None)
    _out.print(
        f"best epoch {result.best_epoch} of {result.epochs}, {result.parameters:,} parameters, "
        f"{result.seconds:.1f} s on {result.device}"
    )
    show_notes(result.notes)
    print_path(folder)


def show_summary(summary: Summary, folder: Path) -> None:
    """Prints the scores of several seeds."""

    def mean_and_deviation(value: MeanStd) -> str:
        return f"{value.mean:.4f}" + ("" if value.std is None else f" ± {value.std:.4f}")

    _show_scores(summary, mean_and_deviation, title=f"{len(summary.seeds)} seeds, mean ± unbiased deviation")
    show_notes(summary.notes)
    print_path(folder)


def _show_scores(found: Result | Summary, written: Callable[[Any], str], title: str | None) -> None:
    table = Table(title=title)
    for header in ("", "accuracy", "macro-F1"):
        table.add_column(header, justify="right" if header else "left")
    rows = {"test": found.test, "validation": found.val, "training, out of fold": found.train_out_of_fold}
    for name, scores in rows.items():
        if scores is not None:
            table.add_row(name, written(scores.accuracy), written(scores.macro_f1))
    _out.print(table)


def show_predictions(table: pd.DataFrame, place: Path) -> None:
    """Prints the number of predictions of each split and their mean confidence."""
    shown = Table("split", "nodes", "mean confidence", title=f"{len(table):,} predictions")
    for name, part in table.groupby("split", sort=True):
        shown.add_row(str(name) or "none", f"{len(part):,}", f"{part['confidence'].mean():.3f}")
    _out.print(shown)
    print_path(place)


def show_statistics(found: Iterable[Statistics | str], title: str | None = None, caption: str | None = None) -> None:
    """Prints the paper's table of data sets; a set that could not be read is its name alone."""
    # narrow enough for a terminal of 80 columns
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=0)
    table.add_column("data set", no_wrap=True)
    for header in ("nodes", "edges", "features", "classes", "split in %", "homophily"):
        table.add_column(header, justify="right", no_wrap=True)
    for one in found:
        if isinstance(one, str):
            table.add_row(one, "not here")
            continue
        parts = (one.train_percent, one.val_percent, one.test_percent)
        split = "/".join(f"{part:.0f}" if part >= 10 else f"{part:.1f}" for part in parts)
        sizes = (f"{size:,}" for size in (one.nodes, one.edges, one.features, one.classes))
        table.add_row(one.name, *sizes, split, f"{one.homophily:.4f}")
    _out.print(table)


def show_notes(notes: list[str]) -> None:
    """Prints what a reader should know of the data."""
    for note in notes:
        _out.print(f"note: {note}", highlight=False)


def print_line(text: str) -> None:
    """Prints a line as it is."""
    _out.print(text, highlight=False)


def print_path(place: Path) -> None:
    """Prints where something was written."""
    # soft wrap: a path must stay in one piece to be copied
    _out.print(str(place), soft_wrap=True, highlight=False)


def print_error(message: str, *, is_red: bool = True) -> None:
    """Prints one line on standard error."""
    _err.print(f"legnn: {message}", style="red" if is_red else None, soft_wrap=True, highlight=False)


class EpochProgress(Progress):
    """A progress line over the epochs; nothing at all where standard error is not a terminal."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
        is_hidden = not sys.stderr.isatty()
        super().__init__(*columns, TimeElapsedColumn(), console=_err, disable=is_hidden, transient=True)
        self._task: TaskID | None = None
        self._title = "training"

    def seed(self, seed: int) -> None:
        """Starts a line for a seed."""
        self._title, self._task = f"seed {seed}", None

    def epoch(self, log: EpochLog) -> None:
        """Moves the line by an epoch."""
        if self._task is None:
            self._task = self.add_task(self._title, total=log.epochs, words="")
        words = f"epoch {log.epoch}  loss {log.loss:.3f}  val {log.val_accuracy:.4f}"
        if log.pseudo_labels is not None:
            words += f"  pseudo labels {log.pseudo_labels:,}"
        self.update(self._task, completed=log.epoch, words=words)
