"""One column of a node table as features: its kind, what is learned from its cells, and how cells become numbers."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from legnn.errors import InputError, plural, short_repr
from legnn.io.columns import ParsedNumbers, as_categories, find, parse_dates, parse_numbers, sorted_unique
from legnn.io.table_files import Table

MOST_VALUES = 64
"""A category with more values is hashed: a column for each would mostly hold zeros."""
BUCKETS = 64

KINDS = {
    "number": "a number",
    "boolean": "true or false",
    "date": "a date such as 2024-05-31",
    "category": "text",
    "hashed": "text",
    "text": "text",
}
"""The kinds of columns, and what one of their cells holds."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """Rule by which a column becomes features; fitted on one table, and applied to any other.

    | kind | features |
    |---|---|
    | number, boolean, date | the value (0 or 1; days since 1970); a missing cell is `fill` |
    | category | a column for each of `values`, 1 where the cell has it; of any other value, none |
    | hashed | `BUCKETS` columns, of which the value's own has 1 or -1 |
    | text | those of a `TextFeatures` |

    If the fitted table `has_missing` cells, one more column marks them.
    """

    name: str
    kind: str
    fill: float = 0.0
    has_missing: bool = False
    values: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"column {self.name!r} is of the kind {self.kind!r}")

    @property
    def is_plain(self) -> bool:
        """Whether the features are the cells as they are."""
        return self.kind in ("number", "boolean") and not self.has_missing

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, of all kinds but text."""
        names = {
            "category": [f"{self.name}={value}" for value in self.values],
            "hashed": [f"{self.name}#{bucket}" for bucket in range(BUCKETS)],
        }.get(self.kind, [self.name])
        return [*names, f"{self.name} is missing"] if self.has_missing else names

    def computes_same(self, other: Column) -> bool:
        """Whether both give their own tables features of one meaning: what fills no cell may differ."""
        has_same_fill = self.fill == other.fill or not self.has_missing
        return self.feature_names == other.feature_names and self.kind == other.kind and has_same_fill

    def encode(self, table: Table, out: np.ndarray) -> None:
        """Writes the features of every row to `out` float32 `[M, len(feature_names)]`, which holds zeros."""
        if self.kind in ("category", "hashed"):
            cells = as_categories(table.columns[self.name])
            if cells is None:
                raise self._other_type(table)
            is_missing = cells.is_null().to_numpy(zero_copy_only=False)
            (self._one_hot if self.kind == "category" else _hash)(cells, out)
        else:
            parse = parse_dates if self.kind == "date" else parse_numbers
            parsed = parse(table.columns[self.name]) if self.kind != "boolean" else _parse_booleans(table, self.name)
            if parsed is None:
                raise self._other_type(table)
            check_cells(parsed, table, self.name, KINDS[self.kind])
            is_missing = np.isnan(parsed.values)
            with np.errstate(over="ignore"):  # what overflows becomes infinite, and validation names the node
                out[:, 0] = np.where(is_missing, self.fill, parsed.values)
        if self.has_missing:
            out[:, -1] = is_missing

    def _one_hot(self, cells: pa.Array, out: np.ndarray) -> None:
        position = find(cells, pa.array(self.values, pa.string()))
        known = np.flatnonzero(position >= 0)
        out[known, position[known]] = 1

    def _other_type(self, table: Table) -> InputError:
        kind = table.columns[self.name].type
        return InputError(
            f"column {self.name!r} of {table.path} is of the type {kind}; it must hold {KINDS[self.kind]}"
        )


def fit_column(table: Table, name: str) -> Column | str:
    """Returns how a column becomes features, or why it does not."""
    column = table.columns[name]
    if column.null_count == len(column):
        return "empty"
    if pa.types.is_boolean(column.type):
        return _fit_numbers(name, "boolean", parse_numbers(column), table)
    is_category = pa.types.is_dictionary(column.type)  # its writer says so, whatever its values are
    if not is_category:
        for kind, parse in (("number", parse_numbers), ("date", parse_dates)):
            parsed = parse(column)
            # more than half of the cells decide what the others should have been
            if parsed is not None and 2 * len(parsed.bad) < parsed.filled and not _are_codes(column, parsed):
                return "empty" if np.isnan(parsed.values).all() else _fit_numbers(name, kind, parsed, table)
    cells = as_categories(column)
    if cells is None:
        return f"of the type {column.type}"
    values = sorted_unique(cells)
    filled = len(cells) - cells.null_count
    if filled == 0:
        return "empty"
    if not is_category and 2 * len(values) > filled:
        return "different in nearly every row"
    if len(values) == 1 and filled == len(cells):
        return "the same in every row"
    has_missing = filled < len(cells)
    if len(values) > MOST_VALUES:
        return Column(name=name, kind="hashed", has_missing=has_missing)
    return Column(name=name, kind="category", has_missing=has_missing, values=values.to_pylist())


def _are_codes(column: pa.ChunkedArray, parsed: ParsedNumbers) -> bool:
    """Whether words among numbers are values like them and no slips: they are many, and come again, as 1 to 22, X."""
    if 10 * len(parsed.bad) < parsed.filled or not len(parsed.bad):
        return False
    cells = as_categories(column)
    assert cells is not None, "only text has cells that are not numbers"
    words, values = (len(sorted_unique(part)) for part in (cells.take(pa.array(parsed.bad)), cells))
    return values <= MOST_VALUES and 2 * values <= parsed.filled and 2 * words <= len(parsed.bad)


def check_cells(parsed: ParsedNumbers, table: Table, name: str, right: str) -> None:
    """Raises `InputError` for the first cell that does not hold what is `right`."""
    if len(parsed.bad):
        position = int(parsed.bad[0])
        cell = short_repr(table.columns[name][position].as_py())
        raise InputError(
            f"{table.path}, {table.row(position)}, column {name!r} has {cell} where "
            f"the other rows have {right.replace('a number', 'numbers').replace('a date', 'dates')}; write {right}, or "
            f"leave the cell empty ({plural(len(parsed.bad), 'such cell')})"
        )


def _fit_numbers(name: str, kind: str, parsed: ParsedNumbers | None, table: Table) -> Column:
    assert parsed is not None, "the type of the column was looked at before"
    check_cells(parsed, table, name, KINDS[kind])
    values = parsed.values
    finite = values[np.isfinite(values)]
    mean = math.fsum(finite.tolist()) / len(finite) if len(finite) else 0.0
    # the most frequent of 0 and 1
    fill = float(mean > 0.5) if kind == "boolean" else mean
    return Column(name=name, kind=kind, fill=fill, has_missing=bool(np.isnan(values).any()))


def _parse_booleans(table: Table, name: str) -> ParsedNumbers | None:
    """Returns truth values, or numbers in their place; a text file may have made text of them."""
    column = table.columns[name]
    cells = as_categories(column)
    if cells is None or not pa.types.is_string(column.type):
        return parse_numbers(column)
    written = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
    for number, word in enumerate(("false", "true")):
        written = pc.if_else(pc.equal(written, word), str(number), written)
    return parse_numbers(pa.chunked_array([written]))


def _hash(cells: pa.Array, out: np.ndarray) -> None:
    """Sets +1 or -1 in the bucket of each value: the signs keep sums over values without a bias."""
    encoded = cells.dictionary_encode()
    digests = [hashlib.blake2b(value.encode(), digest_size=8).digest() for value in encoded.dictionary.to_pylist()]
    number = np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)
    known = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))
    codes = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    bucket, sign = (number % np.uint64(BUCKETS)).astype(np.int64), 1 - 2 * (number >> np.uint64(63)).astype(np.int64)
    out[known, bucket[codes]] = sign[codes]
