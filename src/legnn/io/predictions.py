"""Predictions as a table that the user can join with their own."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from legnn.errors import InputError, first_line
from legnn.files import atomic_write
from legnn.io.table_files import read_table

COLUMNS = ("id", "prediction", "confidence", "split")


def write_predictions(path: str | Path, table: pd.DataFrame) -> None:
    """Writes `id`, `prediction`, `confidence`, `split` and what columns there are beside them, atomically.

    To a `.parquet` or a `.csv` file. Ids, predictions and labels keep the type of the user's tables, so that they can
    be joined.
    """
    path = _table_path(path)
    with atomic_write(path) as file:
        if path.suffix == ".parquet":
            columns = pa.table({name: _array(table[name].to_numpy()) for name in table.columns})
            pq.write_table(columns, file, write_page_checksum=True)
        else:
            table.to_csv(file, index=False)


def read_predictions(path: str | Path) -> pd.DataFrame:
    """Reads of what `write_predictions` wrote the columns `id`, `prediction`, `confidence` and `split`."""
    path = _table_path(path)
    table = read_table(path, keys=["id", "prediction", "split"])
    missing = [name for name in COLUMNS if name not in table.names]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; predictions have {', '.join(COLUMNS)}")
    keys = {name: table.keys(table.columns[name], name) for name in ("id", "prediction")}
    try:
        found = {name: array.to_numpy(zero_copy_only=False) for name, array in keys.items()}
        confidence, split = table.columns["confidence"].to_numpy(), table.columns["split"].fill_null("").to_numpy()
    except pa.ArrowException as error:
        raise InputError(f"{path} does not hold predictions ({first_line(error)}); restore it from a copy") from None
    return pd.DataFrame({**found, "confidence": confidence, "split": split})


def _table_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"predictions go to a .parquet or a .csv file, not to {path}")
    return path


def _array(values: np.ndarray) -> pa.Array:
    return pa.array(values.tolist() if values.dtype == object else values)
