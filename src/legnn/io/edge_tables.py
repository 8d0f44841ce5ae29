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
from legnn.io.table_files import Table, TableFile, as_input_error, check_names, csv_options

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
    file: TableFile,
    source_ids: pa.Array,
    target_ids: pa.Array,
    settings: DataSettings,
    *,
    noun: str | tuple[str, str] = "node",
    is_weight_optional: bool = False,
) -> Edges:
    """Returns the edges of a table, in the order of its rows.

    A file is read in batches, of which only the positions of the ends and the weights are stored.

    Args:
        file: the table; one that is not in memory is from `open_edges`.
        source_ids: the ids of possible sources, all different.
        target_ids: the ids of possible targets; the same object where these are the same nodes.
        settings: the columns of source, target and weight.
        noun: for errors, `node` or `class`; of sources and of targets where these differ.
        is_weight_optional: whether the weight column may be missing even if the user named it.

    Raises `InputError` for the first row with an unknown id or a weight that is not a positive number.
    """
    with as_input_error(file.path):
        file.require(settings.source_column, "source_column")
        file.require(settings.target_column, "target_column")
        weight_name = settings.weight_column
        weighted = weight_name in file.names if is_weight_optional else file.has(weight_name, "weight_column")
        sources = NodeIndex(source_ids)
        targets = sources if target_ids is source_ids else NodeIndex(target_ids)
        of_source, of_target = (noun, noun) if isinstance(noun, str) else noun
        columns: list[_Ends | _Weights] = [
            _Ends(file, settings.source_column, sources, of_source),
            _Ends(file, settings.target_column, targets, of_target),
            *([_Weights(file, weight_name)] if weighted else []),
        ]
        for batch in _batches(file, [column.name for column in columns]):
            for column in columns:
                column.add(batch.column(column.name))
    source, target, *weighted_by = columns
    edge_index = np.empty((2, source.rows), np.int64)
    source.finish(edge_index[0])
    target.finish(edge_index[1])
    weight = weighted_by[0].finish(np.empty(source.rows, np.float32)) if weighted_by else None
    used = [column.name for column in columns]
    return Edges(edge_index, weight, [name for name in file.names if name not in used])


def read_end_ids(file: TableFile, column: str, setting: str) -> pa.Array:
    """Returns the distinct ids of one end of the edges, as int64 or text, in no particular order.

    Raises `InputError` for the first row without an id, or if the column, which `setting` names, is missing.
    """
    ids: list[pa.Array] = []
    rows = 0
    with as_input_error(file.path):
        file.require(column, setting)
        for batch in _batches(file, [column]):
            keys = file.keys(pa.chunked_array([batch.column(column)]), column)
            if keys.null_count:
                row = rows + int(pc.index(keys.is_null(), True).as_py())
                raise InputError(
                    f"{file.path}, {file.row(row)}, has no id in column {column!r}; every edge has two ends"
                )
            ids.append(pc.unique(keys))
            rows += len(keys)
    return pc.unique(join_keys(ids))


@dataclass
class _Column:
    """A column that is being read: its values so far, and the first cell that cannot be used."""

    file: TableFile
    name: str
    parts: list[np.ndarray] = field(default_factory=list, init=False)
    rows: int = field(default=0, init=False)
    bad: int = field(default=0, init=False)
    first_bad: tuple[int, object] | None = field(default=None, init=False)

    def append(self, values: np.ndarray, wrong: np.ndarray, cell: Callable[[int], object]) -> None:
        """Adds the next values, of which some are `wrong`; `cell` returns the content of the file at a position."""
        if wrong.any():
            position = int(np.argmax(wrong))
            self.first_bad = self.first_bad or (self.rows + position, cell(position))
            self.bad += int(wrong.sum())
        self.parts.append(values)
        self.rows += len(values)

    def finish(self, out: np.ndarray) -> np.ndarray:
        """Moves all values to `out`; raises `InputError` for the first cell that cannot be used."""
        if self.first_bad is not None:
            row, value = self.first_bad
            where = f"{self.file.path}, {self.file.row(row)}, column {self.name!r}"
            raise InputError(f"{where} {self.explain(value)}")
        begin = 0
        while self.parts:
            # each part is freed when it is copied: the values are never in memory twice
            part = self.parts.pop(0)
            out[begin : begin + len(part)] = part
            begin += len(part)
        return out

    def explain(self, value: object) -> str:
        raise NotImplementedError


@dataclass
class _Ends(_Column):
    """One end of each edge, as a position in the index."""

    index: NodeIndex
    noun: str

    def add(self, column: pa.Array) -> None:
        keys = self.file.keys(pa.chunked_array([column]), self.name)
        position = self.index.find(keys)
        self.append(position, position < 0, lambda cell: keys[cell].as_py())

    def explain(self, value: object) -> str:
        named = f"no {self.noun}" if value is None else f"{self.noun} {short_repr(value)}"
        return (
            f"names {named}, which is not in the node table ({plural(self.bad, 'such edge')}); every end of an edge "
            f"must be {'a label of some node' if self.noun == 'class' else 'an id of a node'}"
        )


@dataclass
class _Weights(_Column):
    """The weight of each edge."""

    def add(self, column: pa.Array) -> None:
        numbers = parse_numbers(pa.chunked_array([column]))
        if numbers is None:
            where = f"column {self.name!r} of {self.file.path}"
            raise InputError(f"{where} is of the type {column.type}; weights must be numbers")
        weights = single_precision(numbers.values)
        self.append(weights, ~(np.isfinite(weights) & (weights > 0)), lambda cell: column[cell].as_py())

    def explain(self, value: object) -> str:
        shown = "nothing" if value is None else str(value) if _is_number(value) else repr(value)
        return f"has {shown}; a weight must be a finite number above 0"


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def open_edges(path: Path) -> TableFile:
    """Returns the table of a `.parquet` or `.csv` file, of which only the names of the columns are read."""
    with as_input_error(path):
        if path.suffix == ".parquet":
            return TableFile(path, check_names(path, pq.read_schema(path).names))
        with pacsv.open_csv(path, **csv_options([])) as reader:
            return TableFile(path, check_names(path, reader.schema.names))


def _batches(table: TableFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of these columns in batches."""
    if isinstance(table, Table):
        for batch in table.columns.select(columns).to_batches(ROWS):
            yield batch
        return
    path = table.path
    size = path.stat().st_size
    with progress_bar(f"reading {path.name}", size, visible=size >= LARGE) as done, path.open("rb") as file:
        if path.suffix == ".parquet":
            # without buffering ahead, which would hold whole row groups, and a file may be a single one
            parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
            batches = parquet.iter_batches(ROWS, columns=columns)
        else:
            batches = pacsv.open_csv(file, pacsv.ReadOptions(block_size=BLOCK), **csv_options(columns, only=columns))
        for batch in batches:
            yield batch
            done(file.tell())
