"""The leaderboard of a finished search in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

SHOWN = 8
"""First rows that are printed."""

_out = Console(markup=False, emoji=False)


def show_leaderboard(path: Path) -> None:
    """Prints the leaderboard of a finished search: its first rows, and all members."""
    import pandas as pd

    rows = pd.read_csv(path, keep_default_na=False, na_values={"test": [""]})
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title="by validation accuracy; test chooses nothing")
    for header in ("candidate", "", "validation", "test", "seconds", "weight"):
        table.add_column(header, justify="left" if header in ("candidate", "") else "right")
    shown = rows[(rows.index < SHOWN) | (rows["weight"] > 0)]
    for row in shown.to_dict("records"):
        smooth = "C&S" if row["postprocess"] == "correct_and_smooth" else ""
        weight = f"{row['weight']:.2f}" if row["weight"] > 0 else ""
        test = "" if pd.isna(row["test"]) else f"{row['test']:.4f}"  # of data without test nodes
        table.add_row(row["name"], smooth, f"{row['val']:.4f}", test, f"{row['seconds']:.1f}", weight)
    _out.print(table)
    if len(shown) < len(rows):
        _out.print(f"{len(rows) - len(shown)} more in {path}", soft_wrap=True, highlight=False)
