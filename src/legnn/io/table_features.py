"""Features of node tables with columns of several kinds, fitted on one graph and stored to be applied to another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from legnn.errors import InputError, first_line, plural, some_of
from legnn.files import atomic_write
from legnn.io.column_features import BUCKETS, Column, fit_column
from legnn.io.columns import as_text
from legnn.io.table_files import Table
from legnn.io.text_features import TextFeatures
from legnn.typed_json import as_kind, parse_json

ONE_TYPE = "nodes"
"""The name of the table of a graph with one node type."""
NAMES = 8
"""Most columns that a note names of one kind."""


@dataclass(frozen=True)
class ColumnFeatures:
    """The features of one node table: its columns in their order, and the fitted text, if one of them is text."""

    columns: list[Column]
    text: TextFeatures | None = None

    @classmethod
    def fit(
        cls, table: Table, names: Sequence[str], text: str, channels: int
    ) -> tuple[ColumnFeatures, dict[str, list[str]]]:
        """Returns the features of the columns `names` and `text`, and the names of the others by the reason why."""
        columns: list[Column] = []
        unused: dict[str, list[str]] = {}
        for name in names:
            column = fit_column(table, name)
            if isinstance(column, Column):
                columns.append(column)
            else:
                unused.setdefault(column, []).append(name)
        if not text:
            return cls(columns), unused
        return cls(
            [*columns, Column(name=text, kind="text")], TextFeatures.fit(read_texts(table, text), channels)
        ), unused

    @property
    def is_plain(self) -> bool:
        """Whether all features are numbers as the table has them."""
        return all(column.is_plain for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names `[F]` of the features."""
        return [name for column in self.columns for name in self._names(column)]

    def transform(self, table: Table) -> np.ndarray:
        """Returns features float32 `[M, F]` of a table, whose columns may be in another order, with others."""
        missing = [column.name for column in self.columns if column.name not in table.names]
        if missing:
            raise InputError(
                f"{table.path} has no column {some_of([repr(name) for name in missing])}, of which the run's features "
                f"are made; add {'it' if len(missing) == 1 else 'them'}, with empty cells where nothing is known"
            )
        # filled column by column: of a wide table, nothing but the features is there twice
        x = np.zeros((table.columns.num_rows, len(self.feature_names)), dtype=np.float32)
        start = 0
        for column in self.columns:
            part = x[:, start : start + len(self._names(column))]
            if column.kind == "text":
                part[:] = self._text_features.transform(read_texts(table, column.name))
            else:
                column.encode(table, part)
            start += part.shape[1]
        return x

    def computes_same(self, other: ColumnFeatures) -> bool:
        """Whether features of both, each of its own table, mean the same."""
        if len(self.columns) != len(other.columns) or self.text != other.text:
            return False
        return all(column.computes_same(same) for column, same in zip(self.columns, other.columns, strict=True))

    def describe(self) -> str:
        """Returns what becomes of each column, in one sentence."""
        words = {
            "number": "{} as numbers",
            "boolean": "{} as 0 and 1",
            "date": "{} as days since 1970",
            "category": "{} one-hot",
            "hashed": f"{{}} hashed to {BUCKETS} columns each",
            "text": "{} as text",
        }
        parts = []
        for kind, said in words.items():
            named = [self._described(column) for column in self.columns if column.kind == kind]
            if named:
                parts.append(said.format(some_of(named, NAMES)))
        missing = [column for column in self.columns if column.has_missing]
        if missing:
            names = some_of([column.name for column in missing], NAMES)
            parts.append(f"empty cells of {names} are marked in a column more, and numbers there are the mean")
        return "; ".join(parts)

    @property
    def _text_features(self) -> TextFeatures:
        assert self.text is not None, "a column of text comes with what was fitted on it"
        return self.text

    def _names(self, column: Column) -> list[str]:
        if column.kind != "text":
            return column.feature_names
        return [f"{column.name}#{k}" for k in range(self._text_features.channels)]

    def _described(self, column: Column) -> str:
        width = {"category": plural(len(column.values), "value")}
        if column.kind == "text":
            width["text"] = plural(self._text_features.channels, "feature")
        return f"{column.name} ({width[column.kind]})" if column.kind in width else column.name


@dataclass(frozen=True)
class TableFeatures:
    """The fitted features of each node table by its type; `save` and `load` store them without pickle."""

    tables: Mapping[str, ColumnFeatures]

    @property
    def is_plain(self) -> bool:
        """Whether all features are numbers as the tables have them."""
        return all(table.is_plain for table in self.tables.values())

    def computes_same(self, other: object) -> bool:
        """Whether features of both, each of its own tables, mean the same; of types that both have."""
        if not isinstance(other, TableFeatures):
            return False
        return all(
            features.computes_same(other.tables[kind]) for kind, features in self.tables.items() if kind in other.tables
        )

    def save(self, path: str | Path) -> None:
        """Writes a safetensors file, atomically."""
        plan = {"tables": {kind: [asdict(column) for column in table.columns] for kind, table in self.tables.items()}}
        tensors = {"columns": np.frombuffer(json.dumps(plan, ensure_ascii=False).encode(), dtype=np.uint8)}
        for kind, table in self.tables.items():
            if table.text is not None:
                tensors |= {f"{kind}/{name}": array for name, array in table.text.to_arrays().items()}
        with atomic_write(Path(path)) as file:
            file.write(save(tensors))

    @classmethod
    def load(cls, path: str | Path) -> TableFeatures:
        """Reads what `save` wrote; nothing in the file is executed."""
        try:
            tensors = load_file(path)
            plan = as_kind(parse_json(tensors["columns"].tobytes()), dict[str, dict[str, list[Column]]], "the columns")
            return cls({kind: _restore(kind, columns, tensors) for kind, columns in plan["tables"].items()})
        except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{path} does not hold the features of tables ({first_line(error)})") from None


def _restore(kind: str, columns: list[Column], tensors: dict[str, np.ndarray]) -> ColumnFeatures:
    if not any(column.kind == "text" for column in columns):
        return ColumnFeatures(columns)
    prefix = f"{kind}/"
    arrays = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    return ColumnFeatures(columns, TextFeatures.from_arrays(arrays))


def read_texts(table: Table, name: str) -> list[str]:
    """Returns the cells of a column as text, empty where nothing is."""
    texts: list[str] = as_text(table.keys(table.columns[name], name)).fill_null("").to_pylist()
    return texts
