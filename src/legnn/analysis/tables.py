"""Data frames as Markdown and CSV files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype


def to_markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """Returns the columns of a frame, without its index, as a table of Markdown.

    Numbers are aligned to the right, floats have `digits` decimals, and what is missing is an empty cell.
    """
    ruler = ["---:" if is_numeric_dtype(frame[name]) else "---" for name in frame.columns]
    rows = frame.astype(object).itertuples(index=False, name=None)
    lines = [_line(frame.columns), _line(ruler), *(_line(_cell(value, digits) for value in row) for row in rows)]
    return "".join(line + "\n" for line in lines)


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"


def _cell(value: Any, digits: int) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float | np.floating) else str(value)
