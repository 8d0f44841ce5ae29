"""Portfolio and defaults learned without a graph and tried on it, for every graph of a repository of predictions.

    python -m benchmarks.leave_one_out --repository FOLDER [--json FILE] [--picture FILE.png] [--summary FILE.csv]

Prints a Markdown report: test accuracy of the ensemble, of its best single member and of the default, against other
methods, each with the setting that is best on validation; ranks, wins and ties; what labels
are worth; what the guard of the selection does. `--json` keeps a row for each method and run,
`--picture` the ranks, `--summary` a table of all runs. What chooses sees validation nodes alone.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.leave_one_out_report import Row, draw_report_ranks, write_report
from benchmarks.portfolio import SIZE, Gains, learn, missing_runs, without_graph
from benchmarks.predictions import SMOOTH, Cell, Repository, Validation
from legnn.config.candidates import CANDIDATES
from legnn.config.portfolio import Portfolio
from legnn.files import write_text
from legnn.search.selection import best_single, greedy_selection, guarded_selection

PEERS = ("gcn", "sage", "gat", "unimp", "gcnii", "appnp", "label_propagation", "boosted_trees")
"""Groups of candidates that are methods of others."""
WITH_SMOOTH = ("gcn", "sage", "gat")
"""Those that Correct & Smooth is tried on top of."""
LABEL_FREE = ("gcn", "sage", "gat", "gcnii", "appnp", "dagnn", "mlp", "rgcn", "hgt")
"""Groups whose candidates read no labels."""


Weights = dict[str, float]


def choose_ensemble(validation: Validation, entries: Sequence[str], *, is_guarded: bool = True) -> Weights:
    """Returns weights by entry, those of no weight left out."""
    select = guarded_selection if is_guarded else greedy_selection
    weights = select(np.stack([validation.p(entry) for entry in entries]), validation.y)
    return {entry: float(weight) for entry, weight in zip(entries, weights, strict=True) if weight}


def choose_single(validation: Validation, entries: Sequence[str]) -> Weights:
    """Returns the single entry that `best_single` chooses."""
    return {entries[best_single(np.stack([validation.p(entry) for entry in entries]), validation.y)]: 1.0}


def best_on_validation(validation: Validation, entries: Sequence[str]) -> Weights:
    """Returns the entry with the best accuracy, as tuning chooses."""
    return {max(entries, key=validation.accuracies.__getitem__): 1.0}


def uniform(entries: Sequence[str]) -> Weights:
    """Returns equal weights."""
    return dict.fromkeys(entries, 1 / len(entries))


def choices(
    gains: Gains, label_free: Gains, validation: Validation, portfolio: Portfolio, free: Portfolio
) -> Iterator[tuple[str, int, Weights]]:
    """Yields name, number of settings tried, and members of each method on a graph; it sees validation alone."""
    order = [name for name in portfolio.order(validation.facts) if name in validation.seconds]
    entries = gains.entries(validation.key, order)
    if not entries:
        return
    yield "auto", len(order), choose_ensemble(validation, entries)
    yield "single", len(order), choose_single(validation, entries)
    yield from (
        ("default", 1, {name: 1.0}) for name in portfolio.defaults(validation.facts) if name in validation.seconds
    )
    numbers = set()
    for group in PEERS:
        settings = [name for name in validation.seconds if CANDIDATES[name].group == group]
        if settings:
            numbers.add(len(settings))
            yield group, len(settings), best_on_validation(validation, settings)
            if group in WITH_SMOOTH:
                yield (
                    f"{group}{SMOOTH}",
                    len(settings),
                    best_on_validation(validation, gains.entries(validation.key, settings)),
                )
    for number in sorted(numbers):
        yield f"auto of {number}", number, choose_ensemble(validation, gains.entries(validation.key, order[:number]))
    without = label_free.entries(validation.key, free.order(validation.facts))
    if without:
        yield "auto without labels", len(without), choose_ensemble(validation, without)
    yield "unguarded", len(order), choose_ensemble(validation, entries, is_guarded=False)
    yield "best on validation", len(order), best_on_validation(validation, entries)
    yield "first", 1, {order[0]: 1.0}
    for number in (4, 8, 16):
        yield f"mean of first {number}", number, uniform(order[:number])


def evaluate(cell: Cell, name: str, num_settings: int, weights: Weights) -> Row:
    """Returns the test accuracy of members."""
    p = cell.mixture(weights)
    right = p.argmax(1) == cell.y
    return Row(*cell.key, name, num_settings, float(right.mean()), members=_described(weights))


def _described(weights: Weights) -> str:
    heavy = sorted(weights, key=weights.__getitem__, reverse=True)
    return ", ".join(f"{name} {weights[name]:.2f}" for name in heavy[:8])


def leave_one_out(repository: Repository, size: int) -> tuple[list[Row], Mapping[str, Portfolio]]:
    """Returns the rows of all methods, and the portfolio learned without each graph."""
    validations = repository.validations
    free_names = {name for name, candidate in CANDIDATES.items() if candidate.group in LABEL_FREE}
    gains, label_free = Gains(validations), Gains(validations, free_names, smooth=False)
    rows, portfolios = [], {}
    for data in repository.data:
        others = without_graph(list(gains.validations), data)
        if not others:
            print(f"{data}: no other graph to learn from", file=sys.stderr)
            continue
        portfolios[data] = learn(gains, others, size)
        free = learn(label_free, others, size)
        for cell in repository:
            if cell.key.data == data:
                done = set()
                for name, num_settings, weights in choices(gains, label_free, cell.validation, portfolios[data], free):
                    # the first default with a run counts
                    if name not in done:
                        rows.append(evaluate(cell, name, num_settings, weights))
                        done.add(name)
        print(f"{data} done", file=sys.stderr)
    return rows, portfolios


def summarize(repository: Repository) -> str:
    """A CSV table of all runs, averaged over seeds."""
    groups: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for cell in repository:
        for name in cell.validation.seconds:
            groups.setdefault((cell.key.data, cell.key.split, name), []).append(cell.record(name))
    text = io.StringIO()
    columns = ("val", "test", "val_smooth", "test_smooth")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["data", "split", "candidate", "runs", *columns, "seconds"])
    for (data, split, name), records in sorted(groups.items()):
        means = [
            f"{fmean(record[column] for record in records):.4f}" if column in records[0] else "" for column in columns
        ]
        table.writerow(
            [data, split, name, len(records), *means, f"{fmean(record['seconds'] for record in records):.1f}"]
        )
    return text.getvalue()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True, type=Path, help="folder of the repository")
    parser.add_argument("--data", nargs="+", help="these graphs alone")
    parser.add_argument("--size", type=int, default=SIZE, help="candidates of a portfolio")
    parser.add_argument("--json", type=Path, help="keep the rows")
    parser.add_argument("--picture", type=Path, help="draw the ranks, a file for each split")
    parser.add_argument("--summary", type=Path, help="write a CSV table of all runs")
    options = parser.parse_args(arguments)
    repository = Repository(options.repository, options.data)
    if options.summary:
        write_text(options.summary, summarize(repository))
    rows, portfolios = leave_one_out(repository, options.size)
    print(write_report(rows, portfolios, missing_runs(Gains(repository.validations))))
    if options.json:
        write_text(options.json, json.dumps([row._asdict() for row in rows], indent=0))
    if options.picture:
        for split in dict.fromkeys(row.split for row in rows):
            path = options.picture.with_stem(f"{options.picture.stem}-{split}")
            draw_report_ranks([row for row in rows if row.split == split], path)


if __name__ == "__main__":
    main()
