"""Candidates for a cheaper default beside the default: what their runs came to, and which of them is chosen.

The rule is that of `benchmarks.cheaper`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean, stdev
from typing import NamedTuple

from legnn.config.candidates import CANDIDATES

DEFAULT = "legnn-gat-wide-as-train"
PATIENCES = (20, 30, 50)
MOST_LOSS = 0.0025
SPLITS = ("public", "few")


class Setting(NamedTuple):
    """What candidates differ in."""

    hidden: int
    lr: float
    patience: int


class Row(NamedTuple):
    """What a run comes to with a patience."""

    data: str
    split: str
    seed: int
    setting: Setting
    held_out: float
    """Accuracy of the halves of the validation nodes that did not choose the epoch."""
    epochs: int
    """Of early stopping on all validation nodes."""
    unfinished: int
    """Halves that would have gone on."""
    multiplications: int
    """Of an epoch."""


_OLD = CANDIDATES[DEFAULT].values
OLD = Setting(_OLD["hidden"], _OLD["lr"], _OLD["patience"])


class Comparison(NamedTuple):
    """A candidate beside `OLD`."""

    setting: Setting
    difference: float
    error: float
    by_split: dict[str, float]
    worst: tuple[float, str]
    """The lowest mean difference of a graph, and its name."""
    cost: float
    epochs: float

    @property
    def is_as_accurate(self) -> bool:
        return self.difference >= -min(self.error, MOST_LOSS)


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Returns every candidate beside `OLD`, the cheapest first."""
    cells: dict[tuple[str, str, int], dict[Setting, Row]] = {}
    for row in rows:
        cells.setdefault((row.data, row.split, row.seed), {})[row.setting] = row
    trained = {row.setting for row in rows}
    # a graph, split and seed without one of the runs speaks for nobody
    whole = [found for found in cells.values() if set(found) == trained]
    return sorted((_compare(whole, one) for one in trained - {OLD}), key=lambda one: one.cost)


def _compare(cells: Sequence[dict[Setting, Row]], setting: Setting) -> Comparison:
    pairs = [(found[OLD], found[setting]) for found in cells]
    means = _mean_differences(pairs)
    error = stdev(means.values()) / math.sqrt(len(means)) if len(means) > 1 else math.inf
    by_split = {
        name: fmean(_mean_differences([one for one in pairs if one[0].split == name]).values()) for name in SPLITS
    }
    costs = [new.epochs * new.multiplications / (old.epochs * old.multiplications) for old, new in pairs]
    return Comparison(
        setting, fmean(means.values()), error, by_split, min((value, data) for data, value in means.items()),
        geometric_mean(costs), fmean(new.epochs for _, new in pairs),
    )  # fmt: skip


def _mean_differences(pairs: Sequence[tuple[Row, Row]]) -> dict[str, float]:
    """By graph."""
    found: dict[str, list[float]] = {}
    for old, new in pairs:
        found.setdefault(old.data, []).append(new.held_out - old.held_out)
    return {data: fmean(values) for data, values in found.items()}


def choose(compared: Sequence[Comparison]) -> Setting:
    """Returns the cheapest candidate that is as accurate, or `OLD`."""
    return next((one.setting for one in compared if one.is_as_accurate and one.cost < 1), OLD)


def print_table(rows: Sequence[Row]) -> None:
    """Prints all candidates and the choice."""
    compared = compare(rows)
    unfinished = sum(row.unfinished for row in rows)
    print(f"{len(rows) // len(PATIENCES)} runs, {unfinished} of {2 * len(rows)} halves unfinished\n")
    columns = ("channels", "lr", "patience", "difference", "error", *SPLITS, "worst graph", "epochs", "cost", "passes")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for one in compared:
        splits = " | ".join(f"{one.by_split[name]:+.4f}" for name in SPLITS)
        print(
            f"| {one.setting.hidden} | {one.setting.lr} | {one.setting.patience} | {one.difference:+.4f} "
            f"| {one.error:.4f} | {splits} | {one.worst[0]:+.4f} {one.worst[1]} | {one.epochs:.0f} | {one.cost:.3f} "
            f"| {'yes' if one.is_as_accurate else 'no'} |"
        )
    print(f"\nchosen: {choose(compared)}")


COLUMNS = ("data", "split", "seed", "hidden", "lr", "patience", "held_out", "epochs", "unfinished", "multiplications")


def read_rows(path: Path) -> list[Row]:
    """Reads what `add_rows` wrote; nothing if there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [
            Row(
                line["data"], line["split"], int(line["seed"]),
                Setting(int(line["hidden"]), float(line["lr"]), int(line["patience"])), float(line["held_out"]),
                int(line["epochs"]), int(line["unfinished"]), int(line["multiplications"]),
            )
            for line in csv.DictReader(file)
        ]  # fmt: skip


def add_rows(path: Path, rows: Iterable[Row]) -> None:
    """Adds runs to a file as they end: what was trained stays, whatever ends this process."""
    is_new = not path.is_file()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerows((*row[:3], *row.setting, *row[4:]) for row in rows)
