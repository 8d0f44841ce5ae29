"""Labels that look wrong, as `legnn labels check` has ranked them, beside the nodes of a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from legnn.errors import InputError, did_you_mean
from legnn.io.table_files import read_table
from legnn.report.nodes import NodeTable

MOST_LABELS = 1_000
"""The page has no more of them: the most suspicious are at the top, and nobody reads on for so long."""
TEXTS = ("id", "label", "suggested", "split")
NUMBERS = ("score", "p_label", "p_suggested", "neighbors", "neighbors_label", "neighbors_suggested")


def read_checked_labels(labels: pd.DataFrame | str | Path) -> pd.DataFrame:
    """Returns the table of `check_labels`, or of the file that `legnn labels check` wrote, its keys as text."""
    if isinstance(labels, pd.DataFrame):
        where, table = "the table of labels", labels
    else:
        where = str(labels)
        if Path(labels).suffix not in (".parquet", ".csv"):
            raise InputError(f"checked labels are in a .parquet or a .csv file, not in {labels}")
        table = read_table(Path(labels), TEXTS).columns.to_pandas()
    missing = [name for name in (*TEXTS, *NUMBERS) if name not in table.columns]
    if missing:
        raise InputError(
            f"{where} has no column {missing[0]!r}; give what `legnn labels check` or check_labels returned"
        )
    texts = {name: table[name].fillna("").astype(str) for name in TEXTS}
    try:
        return pd.DataFrame({**texts, **{name: table[name].astype(float) for name in NUMBERS}})
    except (TypeError, ValueError):
        raise InputError(
            f"{where} has text where numbers belong ({', '.join(NUMBERS)}); check the labels again"
        ) from None


def collect_labels(labels: pd.DataFrame, table: NodeTable, of_row: np.ndarray) -> dict[str, Any]:
    """Returns the first labels for a page, and how many there are.

    Args:
        labels: what `read_checked_labels` returned.
        of_row: `[n]` the rows of the page's table of the rows of `table`, -1 where it has them not.
    """
    first = labels.head(MOST_LABELS)
    place = {str(one): k for k, one in enumerate(table.id.tolist())}
    classes = {str(one): c for c, one in enumerate(table.graph.class_names)}
    for known, values, what in ((place, first["id"], "node"), *((classes, first[n], "class") for n in TEXTS[1:3])):
        unknown = next((one for one in values if one not in known), None)
        if unknown is not None:
            close = did_you_mean(unknown, list(known)[:10_000])
            raise InputError(f"the run has no {what} {unknown!r}{close}; the labels must be those of its own data")
    rows = [
        {
            **{name: round(float(one[name]), 5) for name in NUMBERS},
            "id": one["id"],
            "row": int(of_row[place[one["id"]]]),
            "label": classes[one["label"]],
            "suggested": classes[one["suggested"]],
            "split": one["split"],
        }
        for one in first.to_dict("records")
    ]
    return {"rows": rows, "of": len(labels)}
