"""Accuracy of `legnn auto` and of the default beside other methods, each with its settings tried on validation.

    python -m benchmarks.accuracy --data cora citeseer --split few --methods auto,default,tuned-gcn --seeds 3 \
        --budget 120 --json accuracy.json

| method | what is trained |
|---|---|
| `auto`, `auto-single` | `legnn auto` within `--budget` seconds: the ensemble, or the best single model |
| `default` | `legnn train` without any option |
| `tuned-GROUP` | all candidates of a group (gcn, sage, gat, gcnii, appnp, unimp, …); the best on validation counts |
| `tuned-GROUP-smooth` | the same, each also after Correct & Smooth |

`many` is 60/20/20 at random by seed, `few` 20 training nodes a class and 500 for validation, `public` the split of the
data set, number `seed` where it has several. With `--repository`, `auto` tries a portfolio that was learned from a
repository of predictions without the data set. The file has a row for each data set, split, method and seed: val, test,
seconds. Runs are kept in the folder FILE.runs, and the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.portfolio import Gains, learn, without_graph
from benchmarks.predictions import Repository
from benchmarks.regimes import REGIMES, load_split
from benchmarks.repository import DEFAULT, Job, train_all
from legnn.config import Settings
from legnn.config.candidates import CANDIDATES
from legnn.config.portfolio import Portfolio, learned_portfolio
from legnn.files import write_text
from legnn.runs import open_predictor
from legnn.runs.folder import LEADERBOARD
from legnn.runs.resources import default_jobs
from legnn.search.auto import auto

GROUPS = list(dict.fromkeys(candidate.group for candidate in CANDIDATES.values()))
METHODS = ["auto", "auto-single", "default", *(f"tuned-{g}{s}" for g in GROUPS for s in ("", "-smooth"))]

Row = dict[str, Any]


def candidates_of(method: str) -> list[str]:
    """The names of the candidates that a method trains; none for `auto`, which chooses them itself."""
    if method == "default":
        return [DEFAULT]
    group = method.removeprefix("tuned-").removesuffix("-smooth")
    return [name for name, candidate in CANDIDATES.items() if candidate.group == group and not candidate.is_typed]


def tuned_row(job: Job, method: str) -> Row | None:
    """The best on validation of the runs of a method; None where one of them is missing."""
    jobs = [job._replace(candidate=name) for name in candidates_of(method)]
    if not all(job.is_done for job in jobs):
        return None
    rows = [json.loads((job.folder / f"{job.candidate}.json").read_text()) for job in jobs]
    entries = [(row["val"], row["test"]) for row in rows if "val" in row]
    if method.endswith("-smooth"):
        entries += [(row["val_smooth"], row["test_smooth"]) for row in rows if "val_smooth" in row]
    if not entries:
        return None
    # the first of equals on validation; test decides nothing
    val, test = max(entries, key=lambda entry: entry[0])
    return {"val": val, "test": test, "seconds": sum(row["seconds"] for row in rows)}


def auto_row(job: Job, method: str, options: argparse.Namespace) -> Row:
    """One search; a finished one is read."""
    folder = job.folder / method
    begin = time.time()
    if not (folder / "result.json").is_file():
        graph, _ = load_split(job.data, job.split, job.seed, Settings())
        auto(
            graph,
            budget=options.budget,
            out=folder,
            single=method == "auto-single",
            jobs=options.jobs,
            seed=job.seed,
            only=options.portfolios(job.data).order(graph.facts()),
        )
    result = open_predictor(folder).result
    assert result.val is not None
    assert result.test is not None
    trained = sum(1 for _ in (folder / LEADERBOARD).open()) - 1
    row = {
        "val": result.val["accuracy"],
        "test": result.test["accuracy"],
        "seconds": result.seconds,
        "entries": trained,
    }
    # predictions are opened a second time above: what the user waits for is the search
    return row | {"wall": round(time.time() - begin, 1)}


def portfolios_of(repository: Path | None) -> Callable[[str], Portfolio]:
    """From a data set to the portfolio that is tried on it: that of the package, or one that was learned without it."""
    if repository is None:
        return lambda data: learned_portfolio()
    gains = Gains(Repository(repository).validations)
    return cache(lambda data: learn(gains, without_graph(list(gains.validations), data)))


def rows_of(options: argparse.Namespace) -> list[Row]:
    """Trains what is missing, and returns a row for each data set, split, method and seed."""
    root = Path(f"{options.json}.runs")
    cells = [
        Job(root, data, split, seed, DEFAULT)
        for seed in range(options.seeds)
        for data in options.data
        for split in options.split
    ]
    tuned = [method for method in options.methods if not method.startswith("auto")]
    jobs = [cell._replace(candidate=name) for cell in cells for method in tuned for name in candidates_of(method)]
    train_all(list(dict.fromkeys(jobs)), options.jobs or default_jobs("auto"), float("inf"))
    rows: list[Row] = []
    for cell in cells:
        for method in options.methods:
            row = auto_row(cell, method, options) if method.startswith("auto") else tuned_row(cell, method)
            if row is not None:
                name = {"data": Path(cell.data).name, "split": cell.split, "method": method, "seed": cell.seed}
                rows.append({**name, **row})
                write_text(options.json, json.dumps(rows, indent=1) + "\n")
    return rows


def show(rows: Sequence[Row], methods: Sequence[str]) -> None:
    table = Table("data", "split", *methods, box=box.MARKDOWN)
    for data, split in dict.fromkeys((row["data"], row["split"]) for row in rows):
        cells = []
        for method in methods:
            accuracies = [r["test"] for r in rows if (r["data"], r["split"], r["method"]) == (data, split, method)]
            deviation = f" ± {statistics.stdev(accuracies):.4f}" if len(accuracies) > 1 else ""
            cells.append(f"{statistics.fmean(accuracies):.4f}{deviation}" if accuracies else "")
        table.add_row(data, split, *cells)
    Console(markup=False, highlight=False, width=200).print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, help="named data sets or folders")
    parser.add_argument("--split", nargs="+", choices=REGIMES, default=["public"])
    parser.add_argument("--methods", default="auto,default,tuned-gcn", help="joined by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of each search")
    parser.add_argument("--repository", type=Path, help="auto tries a portfolio learned from it without the data set")
    parser.add_argument("--jobs", type=int, help="at a time [those of auto and of reproduce]")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.methods = options.methods.split(",")
    options.portfolios = portfolios_of(options.repository)
    unknown = sorted(set(options.methods) - set(METHODS))
    if unknown:
        parser.error(f"there is no method {unknown[0]!r}; choose from {', '.join(METHODS)}")
    show(rows_of(options), options.methods)


if __name__ == "__main__":
    # worker processes find functions by the name of their module
    from benchmarks.accuracy import main as importable

    importable()
