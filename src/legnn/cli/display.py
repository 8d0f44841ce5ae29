"""Output to the terminal: tables, notes, and a progress line over the epochs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from legnn.data import Statistics
    from legnn.experiments import Experiment
    from legnn.runs import CrossFitResult, Evaluation, Result, Summary

# names in the user's data may contain brackets, which are not markup
_out = Console(markup=False, emoji=False)
_err = Console(stderr=True, markup=False, emoji=False)


def show_result(result: Result, folder: Path) -> None:
    """Prints the scores of one run or ensemble."""
    _show_scores(_splits(result), "{:.4f}".format, title=None)
    # an ensemble has no best epoch
    epochs = f"best epoch {result.best_epoch} of {result.epochs}" if result.best_epoch else f"{result.epochs} epochs"
    _out.print(f"{epochs}, {result.parameters:,} parameters, {result.seconds:.1f} s on {result.device}")
    show_notes(result.notes)
    print_path(folder)


def show_summary(summary: Summary, folder: Path) -> None:
    """Prints the scores of several seeds."""
    _show_scores(_splits(summary), str, title=f"{len(summary.seeds)} seeds, mean ± unbiased deviation")
    show_notes(summary.notes)
    print_path(folder)


def show_cross_fit(result: CrossFitResult, folder: Path) -> None:
    """Prints the scores of training nodes by models that never saw their labels, and those of the models."""
    train = {name: f"{value:.4f}" for name, value in result.train_cross_fitted.items()}
    columns = {"test, mean": result.test, "validation, mean": result.val, "training, cross-fitted": train}
    _show_scores(columns, str, title=f"{result.models} models, each without the labels of one fold")
    show_notes(result.notes)
    print_path(folder)


def _splits(result: Result | Summary | Evaluation) -> dict[str, Any]:
    return {"test": result.test, "validation": result.val, "training, own label masked": result.train_masked}


def _show_scores(by_split: Mapping[str, Any], written: Callable[[Any], str], title: str | None) -> None:
    """Prints one row for each metric and one column for each split that has scores."""
    from legnn.training import title_of

    scored = {split: scores for split, scores in by_split.items() if scores}
    table = Table("", title=title)
    for split in scored:
        table.add_column(split, justify="right")
    for name in dict.fromkeys(name for scores in scored.values() for name in scores):
        table.add_row(title_of(name), *(written(scores[name]) if name in scores else "" for scores in scored.values()))
    _out.print(table)


def show_predictions(table: pd.DataFrame, place: Path) -> None:
    """Prints the number of predictions of each split and their mean confidence."""
    shown = Table("split", "nodes", "mean confidence", title=f"{len(table):,} predictions")
    for name, part in table.groupby("split", sort=True):
        shown.add_row(str(name) or "none", f"{len(part):,}", f"{part['confidence'].mean():.3f}")
    _out.print(shown)
    print_path(place)


MOST_CLASSES = 40
"""Most classes in a table of them; a file has all."""
LONGEST_NAME, SHORT_NAME = 24, 4


def show_evaluation(found: Evaluation) -> None:
    """Prints scores of splits and classes, the confusion of the largest classes, and calibration."""
    _show_scores(_splits(found), "{:.4f}".format, title=None)
    if found.num_nodes:
        of_nodes = f"{found.num_nodes:,} {found.nodes} nodes"
        _show_classes(found, of_nodes)
        _show_confusion(found, of_nodes)
        if found.nodes != "test":
            _show_scores({found.nodes: found.scores}, "{:.4f}".format, title=None)
    show_notes(found.notes)


def _largest_classes(found: Evaluation, most: int) -> list[int]:
    """The classes in their order; where there are too many, the largest, by size."""
    every = range(len(found.classes))
    return [*every] if len(every) <= most else sorted(every, key=lambda c: -found.classes[c].support)[:most]


def _print_cut(found: Evaluation, shown: list[int]) -> None:
    more = len(found.classes) - len(shown)
    if more:
        print_line(f"and {more:,} smaller {'class' if more == 1 else 'classes'}; --out FILE.json has all")


def _show_classes(found: Evaluation, of_nodes: str) -> None:
    table = Table(title=f"classes, {of_nodes}", box=box.SIMPLE_HEAD, padding=(0, 1))
    for header in ("class", "precision", "recall", "F1", "nodes"):
        table.add_column(header, justify="left" if header == "class" else "right")
    shown = _largest_classes(found, MOST_CLASSES)
    for one in (found.classes[c] for c in shown):
        scores = (f"{value:.4f}" for value in (one.precision, one.recall, one.f1))
        table.add_row(str(one.name), *scores, f"{one.support:,}")
    _out.print(table)
    _print_cut(found, shown)


def _show_confusion(found: Evaluation, of_nodes: str) -> None:
    names = [str(one.name) for one in found.classes]
    # long names would leave room for a few columns: those have numbers, which stand before the names of the rows
    is_numbered = max(map(len, names)) > SHORT_NAME
    rows = min(max(map(len, names)) + 3, LONGEST_NAME)
    cell = max(len(str(max(max(row) for row in found.confusion))), 3 if is_numbered else SHORT_NAME) + 1
    shown = _largest_classes(found, max((_out.width - rows - len(" others ")) // cell, 2))
    is_cut = len(shown) < len(names)
    title = f"confusion, {of_nodes}: true classes by row, predicted ones by column"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("")
    headers = [str(k) if is_numbered else names[c] for k, c in enumerate(shown, 1)]
    for header in [*headers, "others"] if is_cut else headers:
        table.add_column(header, justify="right", no_wrap=True)
    for k, c in enumerate(shown, 1):
        counts = [found.confusion[c][other] for other in shown]
        others = [found.classes[c].support - sum(counts)] if is_cut else []
        row = f"{k} {names[c]}"[:LONGEST_NAME] if is_numbered else names[c]
        table.add_row(row, *(str(count) for count in counts + others))
    _out.print(table)
    _print_cut(found, shown)


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
        # no edge has two labeled ends, such as among types of which one is labeled
        homophily = "none" if math.isnan(one.homophily) else f"{one.homophily:.4f}"
        table.add_row(one.name, *sizes, split, homophily)
    _out.print(table)


def show_settings(rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Prints settings: their names, values, defaults and help."""
    table = Table("setting", "values", "default", "", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(*row)
    _out.print(table)


def show_notes(notes: Iterable[object]) -> None:
    """Prints what a reader should know of the data."""
    for note in notes:
        _out.print(f"note: {note}", highlight=False)


def print_line(text: str) -> None:
    """Prints a line as it is."""
    _out.print(text, highlight=False)


def print_text(text: str) -> None:
    """Prints lines as they are, however long: a table of Markdown must stay in one piece to be copied."""
    _out.print(text, highlight=False, soft_wrap=True)


def print_path(place: Path) -> None:
    """Prints where something was written."""
    # soft wrap: a path must stay in one piece to be copied
    _out.print(str(place), soft_wrap=True, highlight=False)


def print_error(message: str, *, is_red: bool = True) -> None:
    """Prints one line on standard error."""
    _err.print(f"legnn: {message}", style="red" if is_red else None, soft_wrap=True, highlight=False)


def show_experiments(experiments: Iterable[Experiment]) -> None:
    """Prints the tables and figures that can be made."""
    table = Table("name", "", "", box=box.SIMPLE_HEAD, padding=(0, 1), show_header=False)
    for one in experiments:
        table.add_row(one.name, one.kind, one.title)
    _out.print(table)
    print_line("legnn reproduce NAME makes one: Markdown, CSV and picture, from run folders.")
