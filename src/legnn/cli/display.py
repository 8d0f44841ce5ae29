"""Tables of the terminal: scores, predictions, data sets, settings, and progress over runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from legnn.cli.console import out, print_line, print_path, print_text, show_table

if TYPE_CHECKING:
    import pandas as pd

    from legnn.data import Statistics
    from legnn.experiments import Experiment
    from legnn.runs import CrossFitResult, Evaluation, Result, Summary


def show_result(result: Result, folder: Path) -> None:
    """Prints the scores of one run or ensemble."""
    _show_scores(_splits(result), "{:.4f}".format, title=None)
    # an ensemble has no best epoch
    epochs = f"best epoch {result.best_epoch} of {result.epochs}" if result.best_epoch else f"{result.epochs} epochs"
    out.print(f"{epochs}, {result.parameters:,} parameters, {result.seconds:.1f} s on {result.device}")
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
    out.print(table)


def show_predictions(table: pd.DataFrame, path: Path) -> None:
    """Prints the number of predictions of each split and their mean confidence."""
    rows = [
        (name or "none", f"{len(part):,}", f"{part['confidence'].mean():.3f}")
        for name, part in table.groupby("split", sort=True)
    ]
    show_table(("split", "nodes", "mean confidence"), rows, title=f"{len(table):,} predictions")
    print_path(path)


MOST_CLASSES = 40
"""Most classes in a table; a file has all."""
LONGEST_NAME, CELL = 24, 6


def show_evaluation(evaluation: Evaluation) -> None:
    """Prints scores of splits and classes, the confusion of the largest classes, and calibration."""
    _show_scores(_splits(evaluation), "{:.4f}".format, title=None)
    if evaluation.num_nodes:
        nodes = f"{evaluation.num_nodes:,} {evaluation.nodes} nodes"
        largest = sorted(range(len(evaluation.classes)), key=lambda c: -evaluation.classes[c].support)
        _show_classes(evaluation, sorted(largest[:MOST_CLASSES]), nodes)
        width = min(max(len(str(row.name)) for row in evaluation.classes) + 4, LONGEST_NAME)
        _show_confusion(evaluation, sorted(largest[: max((out.width - width) // CELL - 2, 2)]), nodes)
        if evaluation.nodes != "test":
            _show_scores({evaluation.nodes: evaluation.scores}, "{:.4f}".format, title=None)
    show_notes(evaluation.notes)


def _print_cut(evaluation: Evaluation, shown: list[int]) -> None:
    more = len(evaluation.classes) - len(shown)
    if more:
        print_line(f"and {more:,} smaller {'class' if more == 1 else 'classes'}; --out FILE.json has all")


def _show_classes(evaluation: Evaluation, shown: list[int], nodes: str) -> None:
    classes = [evaluation.classes[c] for c in shown]
    rows = [(c.name, f"{c.precision:.4f}", f"{c.recall:.4f}", f"{c.f1:.4f}", f"{c.support:,}") for c in classes]
    show_table(("class", "precision", "recall", "F1", "nodes"), rows, title=f"classes, {nodes}")
    _print_cut(evaluation, shown)


def _show_confusion(evaluation: Evaluation, shown: list[int], nodes: str) -> None:
    """Prints the confusion with numbered columns: names of classes would leave space for few of them."""
    is_cut = len(shown) < len(evaluation.classes)
    rows = []
    for number, c in enumerate(shown, 1):
        counts = [evaluation.confusion[c][other] for other in shown]
        others = [evaluation.classes[c].support - sum(counts)] if is_cut else []
        rows.append((f"{number} {evaluation.classes[c].name}"[:LONGEST_NAME], *counts, *others))
    headers = ["", *map(str, range(1, len(shown) + 1)), *(["others"] if is_cut else [])]
    show_table(headers, rows, title=f"confusion, {nodes}: true classes by row, predicted ones by column")
    _print_cut(evaluation, shown)


def show_statistics(rows: Iterable[Statistics]) -> None:
    """Prints the paper's table of data sets."""
    headers = ("data set", "nodes", "edges", "features", "classes", "split in %", "homophily")
    show_table(headers, map(_statistics, rows))


def _statistics(row: Statistics) -> tuple[str, ...]:
    parts = (row.train_percent, row.val_percent, row.test_percent)
    split = "/".join(f"{part:.0f}" if part >= 10 else f"{part:.1f}" for part in parts)
    sizes = (f"{size:,}" for size in (row.nodes, row.edges, row.features, row.classes))
    # no edge has two labeled ends, such as among types of which one is labeled
    return row.name, *sizes, split, "none" if math.isnan(row.homophily) else f"{row.homophily:.4f}"


def show_settings(rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Prints settings: their names, values, defaults and help."""
    show_table(("setting", "values", "default", ""), rows, left=4)


def show_notes(notes: Iterable[object]) -> None:
    """Prints what a reader should know of the data."""
    for note in notes:
        print_line(f"note: {note}")


def show_experiments(experiments: Iterable[Experiment]) -> None:
    """Prints the tables and figures that can be made."""
    rows = [(experiment.name, experiment.kind, experiment.title) for experiment in experiments]
    show_table(("name", "kind", "title"), rows, left=3)
    print_line("legnn reproduce NAME makes a table or figure: Markdown, CSV and picture, from run folders.")


SHOWN = 8
"""First rows of a leaderboard that are printed; all members follow."""


def show_leaderboard(path: Path) -> None:
    """Prints the leaderboard of a finished search: its first rows, and all members."""
    import pandas as pd

    board = pd.read_csv(path, keep_default_na=False, na_values={"test": [""]})
    leaders = board[(board.index < SHOWN) | (board["weight"] > 0)]
    rows = [
        (
            row["name"],
            "C&S" if row["postprocess"] == "correct_and_smooth" else "",
            f"{row['val']:.4f}",
            # empty for data without test nodes
            "" if pd.isna(row["test"]) else f"{row['test']:.4f}",
            f"{row['seconds']:.1f}",
            f"{row['weight']:.2f}" if row["weight"] > 0 else "",
        )
        for row in leaders.to_dict("records")
    ]
    headers = ("candidate", "", "validation", "test", "seconds", "weight")
    show_table(headers, rows, left=2, title="by validation accuracy; test chooses nothing")
    if len(leaders) < len(board):
        print_text(f"{len(board) - len(leaders)} more in {path}")
