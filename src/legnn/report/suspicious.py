"""Labels that look wrong, from the table of `legnn labels check`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from legnn.errors import InputError, did_you_mean
from legnn.io.table_files import read_table
from legnn.report.nodes import NodeTable
from legnn.report.payload import SuspiciousLabel, SuspiciousLabels

MOST_LABELS = 1_000
"""Labels on a page: nobody reads on for longer."""
TEXTS = ("id", "label", "suggested", "split")
NUMBERS = ("score", "p_label", "p_suggested", "neighbors", "neighbors_label", "neighbors_suggested")


def read_checked_labels(labels: pd.DataFrame | str | Path) -> pd.DataFrame:
    """Returns the table of `check_labels`, or of the file that `legnn labels check` wrote, with ids as text."""
    if isinstance(labels, pd.DataFrame):
        source, table = "the table of labels", labels
    else:
        source = str(labels)
        if Path(labels).suffix not in (".parquet", ".csv"):
            raise InputError(f"checked labels are in a .parquet or a .csv file, not in {labels}")
        table = read_table(Path(labels), TEXTS).columns.to_pandas()
    missing = [name for name in (*TEXTS, *NUMBERS) if name not in table.columns]
    if missing:
        raise InputError(
            f"{source} has no column {missing[0]!r}; give what `legnn labels check` or check_labels returned"
        )
    texts = {name: table[name].fillna("").astype(str) for name in TEXTS}
    try:
        return pd.DataFrame({**texts, **{name: table[name].astype(float) for name in NUMBERS}})
    except (TypeError, ValueError):
        raise InputError(
            f"{source} has text where numbers belong ({', '.join(NUMBERS)}); check the labels again"
        ) from None


def suspicious_labels(labels: pd.DataFrame, table: NodeTable, page_row: np.ndarray) -> SuspiciousLabels:
    """Returns the first labels for a page.

    Args:
        labels: the result of `read_checked_labels`.
        page_row: `[n]` the rows of the page of the rows of `table`, -1 for none.
    """
    first = labels.head(MOST_LABELS)
    classes = {str(name): c for c, name in enumerate(table.graph.class_names)}
    _check_known(first["id"], table.row_of, "node")
    _check_known(pd.concat([first["label"], first["suggested"]]), classes, "class")
    rows = [
        SuspiciousLabel(
            id=row["id"],
            row=int(page_row[table.row_of[row["id"]]]),
            label=classes[row["label"]],
            suggested=classes[row["suggested"]],
            split=row["split"],
            **{name: round(float(row[name]), 5) for name in NUMBERS},
        )
        for row in first.to_dict("records")
    ]
    return SuspiciousLabels(rows=rows, total=len(labels))


def _check_known(values: pd.Series, known: dict[str, int], kind: str) -> None:
    unknown = next((value for value in values if value not in known), None)
    if unknown is not None:
        close = did_you_mean(unknown, list(known)[:10_000])
        raise InputError(f"the run has no {kind} {unknown!r}{close}; the labels must be those of its own data")
