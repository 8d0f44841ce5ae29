"""A table on disk, as CSV or Parquet: its columns, and the place of a row for error messages."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from legnn.config.data import DataSettings
from legnn.errors import InputError, LegnnError, did_you_mean, first_line
from legnn.io.columns import as_keys

ROW_NUMBERS = re.compile(r"|__index_level_\d+__|Unnamed: 0")


@dataclass(frozen=True)
class TableFile:
    """A table on disk: its path and the names of its columns."""

    path: Path
    names: list[str]

    def require(self, name: str, setting: str) -> None:
        """Raises `InputError` with the columns there are if the column is missing."""
        if name not in self.names:
            close, known = did_you_mean(name, self.names), ", ".join(map(repr, self.names))
            raise InputError(
                f"{self.path} has no column {name!r}{close}; it has {known}, and {setting} says which to use"
            )

    def has(self, name: str, setting: str) -> bool:
        """Whether the column is there; raises `InputError` if a column that the user named is missing."""
        if name == getattr(DataSettings, setting) and name not in self.names:
            return False
        self.require(name, setting)
        return True

    def keys(self, column: pa.ChunkedArray, name: str) -> pa.Array:
        """Returns a column of ids or classes as int64, float64 or string, null where the cell is empty."""
        try:
            return as_keys(column, from_text=self.path.suffix == ".csv")
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r} of {self.path} is of the type {column.type}; it must hold text or numbers"
            ) from error

    def row(self, position: int) -> str:
        """Returns the place of a row: the line of a CSV file, the row of a Parquet file."""
        if self.path.suffix != ".csv":
            return f"row {position} (counting from 0)"
        # counted as an editor does: quoted line breaks and empty lines are lines too
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            try:
                row = next(islice(filter(None, reader), position + 1, None))
            except csv.Error:  # a cell longer than the csv module reads
                return f"row {position + 1} below the header"
            return f"line {reader.line_num - sum(cell.count(chr(10)) for cell in row)}"


@dataclass(frozen=True)
class Table(TableFile):
    """A table that was read."""

    columns: pa.Table

    def column(self, name: str, setting: str) -> pa.ChunkedArray:
        """Returns the column; raises `InputError` with the columns there are."""
        self.require(name, setting)
        return self.columns[name]

    def optional_column(self, name: str, setting: str) -> pa.ChunkedArray | None:
        """Returns the column, or None if it is missing and has the default name."""
        return self.columns[name] if self.has(name, setting) else None


def table_path(folder: Path, stem: str) -> Path:
    """Returns the path of a table that the folder must have."""
    path = optional_table_path(folder, stem)
    if path is None:
        raise InputError(f"{folder} has no {stem}.parquet and no {stem}.csv; a folder of tables needs one of them")
    return path


def optional_table_path(folder: Path, stem: str) -> Path | None:
    """Returns the path of a table, or None where there is none."""
    paths = [path for path in (folder / f"{stem}.parquet", folder / f"{stem}.csv") if path.is_file()]
    if len(paths) == 2:
        raise InputError(f"{folder} has both {stem}.parquet and {stem}.csv; remove the one that is not meant")
    return paths[0] if paths else None


def read_table(path: Path, keys: Sequence[str]) -> Table:
    """Returns the table of a CSV or Parquet file; in CSV the `keys` stay text as written."""
    with as_input_error(path):
        if path.suffix == ".parquet":
            # without partitioning: a folder called year=2020 is not a column
            columns = pq.read_table(path, partitioning=None, page_checksum_verification=True)
        else:
            columns = pacsv.read_csv(path, **csv_options(keys))
        # within it: pyarrow decodes names when they are asked for
        names = check_names(path, columns.column_names)
    return Table(path, names, columns.select(names))


@contextmanager
def as_input_error(path: Path) -> Iterator[None]:
    """Raises `InputError` with the path for any error in reading a file."""
    try:
        yield
    except LegnnError:
        raise
    except Exception as error:  # parsers raise errors of any type for a damaged file
        raise InputError(f"{path} could not be read: {first_line(error)}") from error


def check_names(path: Path, names: list[str]) -> list[str]:
    """Returns the names without row numbers; raises `InputError` for two columns of one name."""
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} has two columns named {repeated!r}; names must differ")
    # pandas also writes its row numbers; as a feature they would give away the order of the rows
    return [name for name in names if not ROW_NUMBERS.fullmatch(name)]


def csv_options(texts: Sequence[str], only: Sequence[str] | None = None) -> dict[str, object]:
    """Returns the options to read a CSV file: columns `texts` as written, `only` these columns or all."""
    return {
        "parse_options": pacsv.ParseOptions(newlines_in_values=True),
        # only the empty cell is missing: a class may be called NA
        "convert_options": pacsv.ConvertOptions(
            column_types=dict.fromkeys(texts, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            include_columns=only,
        ),
    }
