"""Mutations of tables: refused in one sentence, or a graph that can be trained on, predicted and prepared."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pandas as pd
from tests.named import arguments

import legnn
from benchmarks.campaign.cases import Case
from benchmarks.campaign.commands import command
from benchmarks.campaign.damage import OF_BYTES, OF_PLACE, change_parquet
from benchmarks.campaign.results import digest, frame_digest, graph_digest, result_digest
from benchmarks.campaign.specimens import OPTIONS, QUICK, TABLES

Rows = list[list[str]]

CELLS = (
    "", "nan", "NaN", "inf", "-inf", "1e400", "-1e400", "1e-400", "9" * 30, "-" + "9" * 5_000, "1.5", "-0", "007",
    "1e5", "word", "ünï çødé", "🦊", "\u200b", "\u202e", "\x00", "a\x00b", '"', "'", '""', "a,b", "a;b", "a\tb", "a\nb",
    "a\r\nb", "2026-11-16", "2026-13-45", "12:30", "True", "None", "null", "NULL", "0x1F", "1_000", "1,5", " 1 ", "$1",
    "=1+1", "n0", "n1", "class 0", "train", "test", "TRAIN", "unknown", "\ufeff", "\\", "x" * 100_000,
)  # fmt: skip


def table_case(random: Random, specimens: Path, place: Path) -> Case:
    """A folder of tables with one of them damaged."""
    name = random.choice(TABLES)
    folder = place / "data" / name
    folder.parent.mkdir(parents=True)
    shutil.copytree(specimens / "tables" / name, folder)
    path = random.choice(sorted(one for one in folder.rglob("*") if one.is_file()))
    about = _damage(random, path)
    actions = table_actions(name, folder, place, specimens)
    chosen = random.sample([*actions], 2)
    return Case(
        about=f"{name}/{path.name}: {about}",
        actions={one: actions[one] for one in chosen},
        # any other graph is an answer: what matters is that it is one
        expected=lambda _: "another",
        guarded=folder,
        outputs=[place / "trained", place / "prepared", place / "predictions.csv"],
        may_differ=True,
    )


def table_actions(name: str, folder: Path, place: Path, specimens: Path) -> dict[str, Callable[[], str]]:
    """What a user does with a folder of tables."""
    options = OPTIONS.get(name, {})
    finished = specimens / "runs" / {"csv": "finished", "parquet": "finished"}.get(name, f"finished-{name}")

    def train() -> str:
        run = legnn.train(folder, **arguments(**QUICK, **options), out=place / "trained")
        return digest(frame_digest(run.predictions), result_digest(run.result))

    def prepare() -> str:
        made = graph_digest(legnn.prepare_folder(folder, place / "prepared", **options))
        if made != graph_digest(legnn.load(place / "prepared")):
            raise AssertionError("the prepared graph is another than the one that was read")
        return made

    flags = [part for key, value in options.items() for part in ("--set", f"data.{key}={value}")]
    quick = ["--epochs", "2", "--hidden", "8", "--preset", "simple"]
    return {
        "load": lambda: graph_digest(legnn.load(folder, **options)),
        "train": train,
        "prepare": prepare,
        "predict": lambda: frame_digest(legnn.open(finished).predict_proba(folder)),
        "legnn train": lambda: command(["train", folder, "--out", place / "trained", *quick, *flags], place),
        "legnn predict": lambda: command(
            ["predict", finished, "--data", folder, "--out", place / "predictions.csv"], place
        ),
    }


def _damage(random: Random, path: Path) -> str:
    if random.random() < 0.25:
        return random.choice([*OF_BYTES, *OF_PLACE])(random, path, None)
    if path.suffix == ".parquet":
        return change_parquet(random, path, None) if random.random() < 0.4 else _change_values(random, path)
    rows = [*csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))]
    change = random.choice(CHANGES)
    about = change(random, rows)
    dialect = random.choice(DIALECTS) if random.random() < 0.15 else {}
    file = io.StringIO(newline="")
    csv.writer(file, **{"lineterminator": "\n", "quoting": csv.QUOTE_MINIMAL, **dialect}).writerows(rows)
    encoding = random.choice(("utf-16", "latin-1", "utf-8-sig", "cp1252")) if random.random() < 0.1 else "utf-8"
    path.write_bytes(file.getvalue().encode(encoding, errors="replace"))
    return f"{about}{f', {dialect}' if dialect else ''}{f', {encoding}' if encoding != 'utf-8' else ''}"


DIALECTS = (
    {"delimiter": ";"}, {"delimiter": "\t"}, {"delimiter": "|"}, {"quoting": csv.QUOTE_ALL}, {"lineterminator": "\r"},
    {"lineterminator": "\r\n"}, {"lineterminator": "\n\n"}, {"quotechar": "'", "quoting": csv.QUOTE_ALL},
)  # fmt: skip


def _cell(random: Random, rows: Rows) -> str:
    row, column, value = random.randrange(1, len(rows)), random.randrange(len(rows[0])), random.choice(CELLS)
    rows[row][column] = value
    return f"cell of {rows[0][column]!r} ← {value[:20]!r}"


def _cells(random: Random, rows: Rows) -> str:
    column, value, part = random.randrange(len(rows[0])), random.choice(CELLS), random.choice((0.1, 0.6, 1.1))
    for row in rows[1:]:
        if random.random() < part:
            row[column] = value
    return f"{min(part, 1):.0%} of the cells of {rows[0][column]!r} ← {value[:20]!r}"


def _copied_cell(random: Random, rows: Rows) -> str:
    row, other, column = random.randrange(1, len(rows)), random.randrange(1, len(rows)), random.randrange(len(rows[0]))
    rows[row][column] = rows[other][column]
    return f"cell of {rows[0][column]!r} from another row"


def _copied_column(random: Random, rows: Rows) -> str:
    here, there = random.randrange(len(rows[0])), random.randrange(len(rows[0]))
    for row in rows[1:]:
        row[here] = row[there]
    return f"column {rows[0][here]!r} ← {rows[0][there]!r}"


def _header(random: Random, rows: Rows) -> str:
    column = random.randrange(len(rows[0]))
    old, new = rows[0][column], random.choice([*CELLS, *rows[0], "ID", "Label", " id", "weight", "source"])
    rows[0][column] = new
    return f"column {old!r} renamed {new[:20]!r}"


def _column(random: Random, rows: Rows) -> str:
    column, what = random.randrange(len(rows[0])), random.choice(("removed", "doubled", "first", "added"))
    name, value = rows[0][column], random.choice(CELLS)
    for number, row in enumerate(rows):
        if what == "added":
            row.append("added" if number == 0 else value)
            continue
        cell = row.pop(column) if what != "doubled" else row[column]
        if what != "removed":
            row.insert(0, cell)
    return f"column {name!r} {what}"


def _row(random: Random, rows: Rows) -> str:
    row, what = random.randrange(len(rows)), random.choice(("removed", "doubled", "short", "long", "blank", "first"))
    content = rows.pop(row)
    made: Rows = {
        "removed": [],
        "doubled": [content, [*content]],
        "short": [content[:-1]],
        "long": [[*content, "x"]],
        "blank": [[], content],
        "first": [],
    }[what]
    rows[row:row] = made
    if what == "first":
        rows.insert(0, content)
    return f"row {row} {what}"


def _rows(random: Random, rows: Rows) -> str:
    kept = random.choice((0, 1, 2, 3, 5))
    del rows[kept:]
    return f"{kept} rows kept"


def _repeated(random: Random, rows: Rows) -> str:
    number = random.choice((2, 50))
    rows[1:] = [[*row] for _ in range(number) for row in rows[1:]]
    return f"all rows {number} times"


CHANGES = (_cell, _cell, _cell, _cells, _cells, _copied_cell, _copied_column, _header, _header, _column, _row, _rows,
           _repeated)  # fmt: skip


def _change_values(random: Random, path: Path) -> str:
    """Gives a column of a Parquet table another type, or a cell another value."""
    table = pd.read_parquet(path)
    column = random.choice([*table.columns])
    what = random.choice([*TYPES])
    try:
        table[column] = TYPES[what](table[column])
    except (ValueError, TypeError, OverflowError):
        table[column], what = None, "all null"
    table.to_parquet(path, index=False)
    return f"column {column!r} ← {what}"


TYPES: dict[str, Callable[[pd.Series], object]] = {
    "texts": lambda column: column.astype(str),
    "fractions": lambda column: column.astype(float),
    "half numbers": lambda column: column.astype(float) + 0.5,
    "negative": lambda column: -column.astype(float),
    "dates": lambda column: pd.to_datetime(column.astype(float), unit="D"),
    "durations": lambda column: pd.to_timedelta(column.astype(float), unit="D"),
    "truth values": lambda column: column.astype(float) > 1,
    "categories": lambda column: column.astype("category"),
    "bytes": lambda column: [b"\xff%d" % number for number in range(len(column))],
    "lists": lambda column: [[number] for number in range(len(column))],
    "mappings": lambda column: [{"a": number} for number in range(len(column))],
    "large numbers": lambda column: [2**62 + number for number in range(len(column))],
    "unsigned": lambda column: column.astype("uint8"),
    "decimals": lambda column: column.astype("float16"),
    "infinity": lambda column: column.astype(float) * float("inf"),
    "one value": lambda column: column.iloc[0],
}
