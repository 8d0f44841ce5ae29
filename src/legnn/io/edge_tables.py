"""Edge tables of any size, read in batches: ids are looked up at once, and only positions and weights are kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from legnn.config.data import DataSettings
from legnn.errors import InputError, plural, short_repr
from legnn.io.columns import NodeIndex, join_keys, parse_numbers, single_precision
from legnn.io.progress import progress_bar
from legnn.io.table_files import TableFile, as_input_error, check_names, csv_options

ROWS = 1 << 20
"""Rows of a batch of Parquet."""

BLOCK = 1 << 22
"""Bytes of a batch of CSV."""

LARGE = 1 << 26
"""Files of at least this many bytes take seconds to read: a progress bar is shown."""


class Edges(NamedTuple):
    """The edges of a table."""

    edge_index: np.ndarray
    """Int64 `[2, E]`: positions of the source and of the target among their ids."""
    weight: np.ndarray | None
    """Float32 `[E]`, finite and above 0; None where the table has none."""
    unused: list[str]
    """Columns that are neither ends nor weights."""


def read_edges(
    path: Path,
    source_ids: pa.Array,
    target_ids: pa.Array,
    settings: DataSettings,
    *,
    what: str | tuple[str, str] = "node",
    is_weight_optional: bool = False,
) -> Edges:
    """Returns the edges of a `.parquet` or `.csv` file, in the order of its rows.

    Memory holds one batch of the file, the index of the ids, and the result.

    Args:
        path: of the table.
        source_ids: the ids of possible sources, all different.
        target_ids: the ids of possible targets; the same object where these are the same nodes.
        settings: the columns of source, target and weight.
        what: for errors, `node` or `class`; of sources and of targets where these differ.
        is_weight_optional: whether the weight column may be missing even if the user named it.

    Raises `InputError` for the first row with an unknown id or a weight that is not a positive number.
    """
    with as_input_error(path):
        file = TableFile(path, _column_names(path))
        file.require(settings.source_column, "source_column")
        file.require(settings.target_column, "target_column")
        weight_name = settings.weight_column
        weighted = weight_name in file.names if is_weight_optional else file.has(weight_name, "weight_column")
        sources = NodeIndex(source_ids)
        targets = sources if target_ids is source_ids else NodeIndex(target_ids)
        most = _max_rows(path)
        of_source, of_target = (what, what) if isinstance(what, str) else what
        ends = np.empty(2 * most, np.int64)
        weight = np.empty(most, np.float32) if weighted else None
        columns: list[_Ends | _Weights] = [
            _Ends(file, settings.source_column, ends[:most], sources, of_source),
            _Ends(file, settings.target_column, ends[most:], targets, of_target),
        ]
        if weight is not None:
            columns.append(_Weights(file, weight_name, weight))
        for batch in _batches(path, [column.name for column in columns]):
            for column in columns:
                column.add(batch.column(column.name))
    for column in columns:
        column.check()
    rows = columns[0].rows
    if rows < most:
        # targets are moved next to the sources, so that both are one contiguous array without a copy
        ends[rows : 2 * rows] = ends[most : most + rows]
    used = [column.name for column in columns]
    return Edges(
        ends[: 2 * rows].reshape(2, rows),
        None if weight is None else weight[:rows],
        [name for name in file.names if name not in used],
    )


def read_end_ids(path: Path, column: str, setting: str) -> pa.Array:
    """Returns the distinct ids of one end of the edges, as int64 or text, in no particular order.

    Raises `InputError` for the first row without an id, or if the column, which `setting` names, is missing.
    """
    found: list[pa.Array] = []
    rows = 0
    with as_input_error(path):
        file = TableFile(path, _column_names(path))
        file.require(column, setting)
        for batch in _batches(path, [column]):
            keys = file.keys(pa.chunked_array([batch.column(column)]), column)
            if keys.null_count:
                row = rows + int(pc.index(keys.is_null(), True).as_py())
                raise InputError(f"{path}, {file.row(row)}, has no id in column {column!r}; every edge has two ends")
            found.append(pc.unique(keys))
            rows += len(keys)
    return pc.unique(join_keys(found))


@dataclass
class _Column:
    """A column that is being read: an array for its values, and the first cell that cannot be used."""

    file: TableFile
    name: str
    out: np.ndarray
    rows: int = field(default=0, init=False)
    bad: int = field(default=0, init=False)
    first_bad: tuple[int, object] | None = field(default=None, init=False)

    def append(self, values: np.ndarray, wrong: np.ndarray, cell: Callable[[int], object]) -> None:
        """Adds the next values, of which some are `wrong`; `cell` returns the content of the file at a position."""
        if wrong.any():
            position = int(np.argmax(wrong))
            self.first_bad = self.first_bad or (self.rows + position, cell(position))
            self.bad += int(wrong.sum())
        self.out[self.rows : self.rows + len(values)] = values
        self.rows += len(values)

    def check(self) -> None:
        """Raises `InputError` for the first cell that cannot be used."""
        if self.first_bad is not None:
            row, value = self.first_bad
            where = f"{self.file.path}, {self.file.row(row)}, column {self.name!r}"
            raise InputError(f"{where} {self.explain(value)}")

    def explain(self, value: object) -> str:
        raise NotImplementedError


@dataclass
class _Ends(_Column):
    """One end of each edge, as a position in the index."""

    index: NodeIndex
    what: str

    def add(self, column: pa.Array) -> None:
        keys = self.file.keys(pa.chunked_array([column]), self.name)
        position = self.index.find(keys)
        self.append(position, position < 0, lambda cell: keys[cell].as_py())

    def explain(self, value: object) -> str:
        named = f"no {self.what}" if value is None else f"{self.what} {short_repr(value)}"
        return (
            f"names {named}, which is not in the node table ({plural(self.bad, 'such edge')}); every end of an edge "
            f"must be {'a label of some node' if self.what == 'class' else 'an id of a node'}"
        )


@dataclass
class _Weights(_Column):
    """The weight of each edge."""

    def add(self, column: pa.Array) -> None:
        weights = single_precision(self._numbers(column))
        self.append(weights, ~(np.isfinite(weights) & (weights > 0)), lambda cell: column[cell].as_py())

    def _numbers(self, column: pa.Array) -> np.ndarray:
        if pa.types.is_string(column.type):
            try:
                # many times faster, and most columns hold numbers only
                return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                pass
        numbers = parse_numbers(pa.chunked_array([column]))
        if numbers is None:
            where = f"column {self.name!r} of {self.file.path}"
            raise InputError(f"{where} is of the type {column.type}; weights must be numbers")
        return numbers.values

    def explain(self, value: object) -> str:
        shown = "nothing" if value is None else str(value) if _is_number(value) else repr(value)
        return f"has {shown}; a weight must be a finite number above 0"


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _column_names(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return check_names(path, pq.read_schema(path).names)
    with pacsv.open_csv(path, **csv_options([])) as reader:
        return check_names(path, reader.schema.names)


def _max_rows(path: Path) -> int:
    """Returns the number of rows; of CSV an upper bound, which counts empty lines and quoted line breaks."""
    if path.suffix == ".parquet":
        rows: int = pq.read_metadata(path).num_rows
        return rows
    lines, last = 0, b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            # a line may end with either, or with both, one after the other
            lines += block.count(b"\n") + block.count(b"\r") - (last + block).count(b"\r\n")
            last = block[-1:]
    # without a line end after the last row, the header makes up for it
    return lines - 1 if last in (b"\n", b"\r") else lines


def _batches(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of these columns in batches."""
    size = path.stat().st_size
    with progress_bar(f"reading {path.name}", size, visible=size >= LARGE) as done:
        yield from (_parquet_batches if path.suffix == ".parquet" else _csv_batches)(path, columns, done)


def _parquet_batches(path: Path, columns: list[str], done: Callable[[float], None]) -> Iterator[pa.RecordBatch]:
    # without buffering ahead, which would hold whole row groups, and a file may be a single one
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        size, rows = path.stat().st_size, 0
        for batch in file.iter_batches(ROWS, columns=columns):
            yield batch
            rows += batch.num_rows
            done(size * rows / file.metadata.num_rows)


def _csv_batches(path: Path, columns: list[str], done: Callable[[float], None]) -> Iterator[pa.RecordBatch]:
    options = csv_options(columns, only=columns)
    with path.open("rb") as file, pacsv.open_csv(file, pacsv.ReadOptions(block_size=BLOCK), **options) as reader:
        for batch in reader:
            yield batch
            done(file.tell())
