"""Cells of a table: ids and classes of any type and where to find them, split names, numbers."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from legnn.lazy import pandas as pd

CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"  # what str(int) writes and int64 holds: '007' and '1.0' stay text
WHOLE_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.0+)?$"
MISSING_WORDS = ["na", "n/a", "nan", "null", "none", "?", "-"]
"""Words for a missing number or date, in lower case."""
ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


class ParsedNumbers(NamedTuple):
    """A column read as numbers."""

    values: np.ndarray  # float64 [M], NaN where the cell is missing or not a number
    bad: np.ndarray  # int64 [B], positions of cells that hold something that is not a number
    filled: int  # cells that are not missing


def as_keys(column: pa.ChunkedArray, from_text: bool) -> pa.Array:
    """Returns ids or classes as int64, float64 or string, null where the cell is empty.

    `from_text` says that the column comes from a text file, where integers are written as text.
    """
    values = _plain(column)
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int64())
    if pa.types.is_integer(values.type):
        fits = values.type != pa.uint64() or (pc.max(values).as_py() or 0) < 2**63
        return values.cast(pa.int64() if fits else pa.string())
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        floats = values.cast(pa.float64())
        floats = pc.if_else(pc.is_nan(floats), pa.scalar(None, pa.float64()), floats)
        whole = pc.all(pc.and_(pc.equal(floats, pc.trunc(floats)), pc.less(pc.abs(floats), 2.0**53))).as_py()
        return floats if whole is False else floats.cast(pa.int64())
    text = values.cast(pa.string())
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    if from_text and text.null_count < len(text) and pc.all(pc.match_substring_regex(text, CANONICAL_INTEGER)).as_py():
        return text.cast(pa.int64())
    return text


def as_classes(keys: pa.Array) -> pa.Array:
    """Returns keys as classes: text that pandas wrote for whole numbers with gaps (`1.0`) is int64."""
    if not pa.types.is_string(keys.type) or keys.null_count == len(keys):
        return keys
    if not pc.all(pc.match_substring_regex(keys, WHOLE_NUMBER)).as_py():
        return keys
    return pc.replace_substring_regex(keys, r"\.0+$", "").cast(pa.int64())


def count_fractions(classes: pa.Array) -> int:
    """Returns the number of classes if all are numbers, some of them not whole; otherwise 0."""
    numbers = pd.to_numeric(pd.Series(classes.to_numpy(zero_copy_only=False)), errors="coerce").to_numpy(np.float64)
    is_measured = bool(np.isfinite(numbers).all()) and bool((numbers != np.trunc(numbers)).any())
    return len(numbers) if is_measured else 0


def as_text(keys: pa.Array) -> pa.Array:
    """Returns the keys as strings, by which keys of different types are compared."""
    return keys.cast(pa.string())


def join_keys(parts: list[pa.Array]) -> pa.Array:
    """Returns the keys of several columns as one: int64 if all of them are, otherwise text."""
    filled = [part for part in parts if len(part)]
    if not all(pa.types.is_int64(part.type) for part in filled):
        filled = [as_text(part) for part in filled]
    return pa.concat_arrays(filled) if filled else pa.array([], pa.int64())


def find(keys: pa.Array, among: pa.Array) -> np.ndarray:
    """Returns the position of each key in `among`, int64 [len(keys)]; -1 where it is not there or null.

    Integers are compared by value, keys of another type as text.
    """
    if keys.type != among.type:
        keys, among = as_text(keys), as_text(among)
    positions = pc.index_in(keys, value_set=among, skip_nulls=True)
    return positions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


class NodeIndex:
    """Finds the positions of keys among `ids` `[M]`, which are all different and not null."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        self._is_int = pa.types.is_int64(ids.type)
        self._is_range = self._is_int and np.array_equal(ids.to_numpy(zero_copy_only=False), np.arange(len(ids)))

    def find(self, keys: pa.Array) -> np.ndarray:
        """Returns the positions of keys as `find` does, from an index that is built once."""
        if not self._is_int or not pa.types.is_int64(keys.type):
            return self._texts.get_indexer(as_text(keys).to_numpy(zero_copy_only=False)).astype(np.int64)
        numbers = keys.fill_null(-1).to_numpy(zero_copy_only=False)
        if self._is_range:
            # as unsigned, a negative number is above them all
            return np.where(numbers.view(np.uint64) < len(self._ids), numbers, -1)
        position = self._values.get_indexer(numbers).astype(np.int64)
        if keys.null_count:
            position[keys.is_null().to_numpy(zero_copy_only=False)] = -1
        return position

    @cached_property
    def _values(self) -> pd.Index:
        return pd.Index(self._ids.to_numpy(zero_copy_only=False))

    @cached_property
    def _texts(self) -> pd.Index:
        return pd.Index(as_text(self._ids).to_numpy(zero_copy_only=False), dtype=object)


def sorted_unique(keys: pa.Array) -> pa.Array:
    """Returns the distinct keys that are not null: numbers by size, text by its characters."""
    different = pc.unique(keys).drop_null()
    return different.take(pc.sort_indices(different))


def parse_numbers(column: pa.ChunkedArray) -> ParsedNumbers | None:
    """Returns the column as numbers, or None for a type that holds none (dates, lists)."""
    values = _plain(column)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return ParsedNumbers(numbers, np.empty(0, dtype=np.int64), len(values) - values.null_count)
    if not _is_text(values.type):
        return None
    text, filled = _written(values)
    numbers = pd.to_numeric(pd.Series(text), errors="coerce").to_numpy(dtype=np.float64)
    return ParsedNumbers(numbers, np.flatnonzero(filled & np.isnan(numbers)), int(filled.sum()))


def parse_dates(column: pa.ChunkedArray) -> ParsedNumbers | None:
    """Returns dates, of their own type or written as ISO 8601, as days since 1970; None for a type that holds none."""
    values = _plain(column)
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        times = values if pa.types.is_timestamp(values.type) else values.cast(pa.timestamp("ms"))
        unit, ticks = times.type.unit, times.cast(pa.int64())  # with a time zone, Arrow counts in UTC
        days = ticks.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / TICKS_PER_DAY[unit]
        return ParsedNumbers(days, np.empty(0, dtype=np.int64), len(values) - values.null_count)
    if not _is_text(values.type):
        return None
    text, filled = _written(values)
    is_iso = filled & pc.match_substring_regex(pa.array(text, pa.string()), ISO_DATE).to_numpy(zero_copy_only=False)
    days = np.full(len(values), np.nan)
    if is_iso.any():
        dates = pd.to_datetime(pd.Series(text[is_iso]), format="ISO8601", utc=True, errors="coerce")
        days[is_iso] = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return ParsedNumbers(days, np.flatnonzero(filled & np.isnan(days)), int(filled.sum()))


TICKS_PER_DAY = {"s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}


def as_categories(column: pa.ChunkedArray) -> pa.Array | None:
    """Returns the values as text, null where the cell is empty; None for a type that is no category."""
    values = _plain(column)
    is_plain = _is_text(values.type) or pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)
    if pa.types.is_floating(values.type) or pa.types.is_null(values.type):
        values, is_plain = as_keys(column, from_text=False), True  # whole numbers with gaps are written as integers
    if not is_plain:
        return None
    text = values.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _written(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cells without spaces around them, and which are filled, both `[M]`."""
    text = pc.utf8_trim_whitespace(values.cast(pa.string())).fill_null("")
    is_missing = pc.or_(pc.equal(text, ""), pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING_WORDS)))
    return text.to_numpy(zero_copy_only=False), ~is_missing.to_numpy(zero_copy_only=False)


def single_precision(numbers: np.ndarray) -> np.ndarray:
    """Returns the numbers as contiguous float32, without a copy where they are that already."""
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and validation names the node
        return np.ascontiguousarray(numbers, dtype=np.float32)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Returns one array without chunks or dictionary."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = column.cast(kind).combine_chunks()
    return values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
