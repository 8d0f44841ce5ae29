"""Predictions as a table that the user can join with their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from legnn.errors import InputError, first_line
from legnn.files import atomic_write
from legnn.lazy import pandas as pd

COLUMNS = ("id", "prediction", "confidence", "split")
NUMBERS = (np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64))
"""Types of ids and confidences whose arrays are what Arrow keeps."""


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column of few different values, such as classes: as many Python objects as rows take longer to write."""

    categories: Sequence[Any]
    codes: np.ndarray
    """`[n]` int64: the place of each row's value in `categories`."""

    def values(self) -> list[Any]:
        """The value of each row."""
        return [self.categories[k] for k in self.codes.tolist()]


Column = Sequence[Any] | np.ndarray | CategoricalColumn


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """Columns of one length by name, without pandas, which takes a third of a second to import."""

    columns: Mapping[str, Column]
    notes: tuple[str, ...] = ()
    """Texts of the notes of the graph: a frame with other objects in its attributes cannot be written to Parquet."""

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> PredictionTable:
        """From the columns of a frame."""
        return cls({name: frame[name].to_numpy() for name in frame.columns}, tuple(frame.attrs.get("notes", ())))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The same as a frame, with the notes as `attrs["notes"]`."""
        columns = {
            name: column.values() if isinstance(column, CategoricalColumn) else column
            for name, column in self.columns.items()
        }
        frame = pd.DataFrame(columns)
        frame.attrs["notes"] = list(self.notes)
        return frame


def write_predictions(path: str | Path, table: PredictionTable | pd.DataFrame) -> None:
    """Writes `id`, `prediction`, `confidence`, `split` and what columns there are beside them, atomically.

    To a `.parquet` or a `.csv` file. Ids, predictions and labels keep the type of the user's tables, so that they can
    be joined.
    """
    path = _table_path(path)
    if not isinstance(table, PredictionTable):
        table = PredictionTable.from_frame(table)
    with atomic_write(path) as file:
        if path.suffix == ".parquet":
            arrays = {name: _column(values) for name, values in table.columns.items()}
            pq.write_table(pa.table(arrays), file, write_page_checksum=True)
        else:
            table.frame.to_csv(file, index=False)


def read_predictions(path: str | Path) -> pd.DataFrame:
    """Reads of what `write_predictions` wrote the columns `id`, `prediction`, `confidence` and `split`."""
    from legnn.io.table_files import read_table

    path = _table_path(path)
    table = read_table(path, keys=["id", "prediction", "split"])
    missing = [name for name in COLUMNS if name not in table.names]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; predictions have {', '.join(COLUMNS)}")
    keys = {name: table.keys(table.columns[name], name) for name in ("id", "prediction")}
    try:
        columns = {name: array.to_numpy(zero_copy_only=False) for name, array in keys.items()}
        confidence, split = table.columns["confidence"].to_numpy(), table.columns["split"].fill_null("").to_numpy()
    except pa.ArrowException as error:
        raise InputError(f"{path} does not hold predictions ({first_line(error)}); restore it from a copy") from None
    return pd.DataFrame({**columns, "confidence": confidence, "split": split})


def _table_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"predictions go to a .parquet or a .csv file, not to {path}")
    return path


def _column(values: Column) -> pa.Array:
    if not isinstance(values, CategoricalColumn):
        return _array(values)
    return pa.DictionaryArray.from_arrays(_array(values.codes), _array(values.categories)).dictionary_decode()


def _array(values: Sequence[Any] | np.ndarray) -> pa.Array:
    """The values as `pa.array` has them, which imports pandas: numbers and texts are put together without it."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    kinds = set() if isinstance(values, np.ndarray) else {type(value) for value in values}
    array = np.array(values) if kinds == {int} else values
    if isinstance(array, np.ndarray) and array.dtype in NUMBERS:
        buffers = [None, pa.py_buffer(np.ascontiguousarray(array))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), buffers)
    texts = [value.encode() for value in values] if kinds == {str} else []
    ends = np.cumsum([0, *map(len, texts)])
    if not texts or ends[-1] >= 2**31:
        return pa.array(values)
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)
