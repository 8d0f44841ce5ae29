"""A folder with a node table and an edge table, as CSV or Parquet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from legnn.config.data import DataSettings
from legnn.data.raw_graph import RawGraph
from legnn.data.splits import NO_SPLIT, SPLIT_WORDS
from legnn.errors import InputError, did_you_mean, first_line, plural, short_repr, some_of
from legnn.io.arrays import map_array
from legnn.io.column_features import check_cells
from legnn.io.columns import (
    as_classes,
    as_text,
    count_fractions,
    find,
    parse_numbers,
    single_precision,
    sorted_unique,
)
from legnn.io.edge_tables import open_edges, read_edges
from legnn.io.table_features import ONE_TYPE, ColumnFeatures, TableFeatures
from legnn.io.table_files import (
    Table,
    TableFile,
    as_input_error,
    check_names,
    optional_table_path,
    read_table,
    table_path,
)
from legnn.lazy import pandas as pd
from legnn.notes import Note

FEATURE_FILE = "features.npy"
NAMED = 12
"""Most columns that a note names."""
MOST_FRACTIONS, FEW_FRACTIONS = 100, 10
"""More different fractions are no classes; nor are more than few of them if most have one node alone."""

ClassNames = list[str | int | float]


class NodeFeatures(NamedTuple):
    """The features of a node table, and how they were made where that is known."""

    x: Tensor
    names: list[str] | None = None
    columns: ColumnFeatures | None = None


def read_table_folder(
    folder: Path, settings: DataSettings, fitted: TableFeatures | None, *, training: bool = True
) -> RawGraph:
    """Returns the graph of a folder with `nodes` and `edges` (`.parquet` or `.csv`) and optionally `features.npy`.

    The folder may hold prior knowledge of the labels: `labels` (a row for each class: its name, and its features in
    numeric columns) and `label_edges` (`source`, `target`, optional `weight`). If not `training`, the label column may
    be missing. Columns become features as `fitted` says, or by a new fit if it is None.
    """
    node_path, edge_path = table_path(folder, "nodes"), table_path(folder, "edges")
    columns = None if fitted is None else fitted.tables.get(ONE_TYPE)
    nodes, edges = read_node_table(node_path, settings, columns), open_edges(edge_path)
    raw = graph_of_tables(nodes, edges, settings, columns, folder / FEATURE_FILE, training=training)
    raw = replace(raw, name=folder.resolve().name)
    if not training:
        return raw
    label_x, label_adjacency = (read(folder, raw.class_names, settings) for read in (_label_features, _label_adjacency))
    return replace(raw, label_x=label_x, label_adjacency=label_adjacency)


def graph_of_frames(
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    settings: DataSettings,
    fitted: TableFeatures | None,
    *,
    training: bool = True,
) -> RawGraph:
    """Returns the graph of two frames, with the columns that the tables `nodes` and `edges` of a folder have."""
    columns = None if fitted is None else fitted.tables.get(ONE_TYPE)
    node_table, edge_table = _table_of_frame("nodes", nodes), _table_of_frame("edges", edges)
    return graph_of_tables(node_table, edge_table, settings, columns, training=training)


def _table_of_frame(name: str, frame: pd.DataFrame) -> Table:
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    try:
        columns = pa.Table.from_pandas(frame, preserve_index=False)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InputError(f"the frame of {name} is no table ({first_line(error)}); give a column one type") from None
    names = check_names(Path(name), columns.column_names)
    return Table(Path(name), names, columns.select(names))


def graph_of_tables(
    nodes: Table,
    edge_table: TableFile,
    settings: DataSettings,
    columns: ColumnFeatures | None,
    feature_file: Path | None = None,
    *,
    training: bool = True,
) -> RawGraph:
    """Returns the graph of a table of nodes and a table of edges; arguments as in `read_table_folder`."""
    if nodes.columns.num_rows == 0:
        raise InputError(f"{nodes.path} has no rows; a graph needs nodes")
    ids = read_ids(nodes, settings)
    y, class_names = read_labels(nodes, settings, training)
    split = read_split(nodes, settings)
    notes: list[Note] = []
    features = read_features(feature_file, nodes, settings, columns, notes)
    edges = read_edges(edge_table, ids, ids, settings)
    if edges.edge_index.shape[1] == 0:
        raise InputError(f"{edge_table.path} has no rows; a graph needs at least one edge")
    note_unused(notes, edges.unused, edge_table.path, "edges have ends and a weight alone")
    return RawGraph(
        name="the graph",
        x=features.x,
        y=y,
        edge_index=torch.from_numpy(edges.edge_index),
        edge_weight=None if edges.weight is None else torch.from_numpy(edges.weight),
        split=split,
        class_names=class_names,
        node_id=ids.to_numpy(zero_copy_only=False),
        feature_names=features.names,
        table_features=None if features.columns is None else TableFeatures({ONE_TYPE: features.columns}),
        notes=notes,
    )


def read_node_table(path: Path, settings: DataSettings, fitted: ColumnFeatures | None) -> Table:
    """Returns a node table; in CSV its ids, labels, splits, texts and known categories stay as they are written."""
    keys = [settings.id_column, settings.label_column, settings.split_column, settings.text]
    # a category may look like numbers in one table and not in another
    keys += (
        [] if fitted is None else [column.name for column in fitted.columns if column.kind in ("category", "hashed")]
    )
    return read_table(path, [key for key in keys if key])


def read_ids(nodes: Table, settings: DataSettings) -> pa.Array:
    """Returns the ids of a node table; raises `InputError` for one that is missing or repeated."""
    name = settings.id_column
    ids = nodes.keys(nodes.column(name, "id_column"), name)
    if ids.null_count:
        position = _first(pc.is_null(ids).to_numpy(zero_copy_only=False))
        raise InputError(f"{nodes.path}, {nodes.row(position)}, has no id in column {name!r}; every node needs one")
    if pa.types.is_floating(ids.type):
        ids = as_text(ids)  # fractions are compared as they are written
    where_first = find(ids, ids)
    again = where_first != np.arange(len(ids))
    if again.any():
        position = _first(again)
        raise InputError(
            f"id {short_repr(ids[position].as_py())} of {nodes.path} is there twice, in "
            f"{nodes.row(int(where_first[position]))} and {nodes.row(position)}; ids must differ"
        )
    return ids


def read_labels(nodes: Table, settings: DataSettings, training: bool) -> tuple[Tensor, ClassNames]:
    """Returns classes `[M]` and the names of the classes; if not `training`, the label column may be missing."""
    name = settings.label_column
    column = nodes.column(name, "label_column") if training else nodes.optional_column(name, "label_column")
    if column is None:
        return torch.full((nodes.columns.num_rows,), -1), []
    labels = nodes.keys(column, name)
    if nodes.path.suffix == ".csv":
        labels = as_classes(labels)
    classes = sorted_unique(labels)
    fractions = count_fractions(classes) if training else 0
    if fractions > MOST_FRACTIONS or (fractions > FEW_FRACTIONS and 2 * fractions > len(labels) - labels.null_count):
        raise InputError(
            f"column {name!r} of {nodes.path} looks like regression: it holds {fractions:,} different numbers, such as "
            f"{classes[0].as_py()}; nodes are classified here, so give classes, or a column of text"
        )
    return torch.from_numpy(find(labels, classes)), classes.to_pylist()


def read_split(nodes: Table, settings: DataSettings) -> Tensor | None:
    """Returns the split of the split column, or None where there is no such column."""
    name = settings.split_column
    column = nodes.optional_column(name, "split_column")
    if column is None:
        return None
    written = as_text(nodes.keys(column, name))
    part = find(pc.utf8_lower(pc.utf8_trim_whitespace(written)), pa.array(list(SPLIT_WORDS)))
    misspelt = (part < 0) & pc.is_valid(written).to_numpy(zero_copy_only=False)
    if misspelt.any():
        position = _first(misspelt)
        value = written[position].as_py()
        raise InputError(
            f"{nodes.path}, {nodes.row(position)}, column {name!r} has {short_repr(value)}"
            f"{did_you_mean(value, SPLIT_WORDS)}; a split is train, val (or valid, validation), test, or empty"
        )
    # -1, not in any split, picks the last entry
    return torch.from_numpy(np.array([*SPLIT_WORDS.values(), NO_SPLIT], np.int8)[part])


def read_features(
    feature_file: Path | None, nodes: Table, settings: DataSettings, fitted: ColumnFeatures | None, notes: list[Note]
) -> NodeFeatures:
    """Returns the features of the feature file or the columns; none (`[M, 0]`) where the settings compute them.

    What became of the columns is said in `notes`. They are transformed by `fitted`, or by a new fit if it is None; a
    feature file takes the place of columns that are not fitted and not text.
    """
    if settings.features != "given":
        return NodeFeatures(torch.empty(nodes.columns.num_rows, 0))
    others = [name for name in nodes.names if name not in _not_features(settings)]
    if feature_file is not None and feature_file.is_file():
        if fitted is None and not settings.text:
            note_unused(notes, others, nodes.path, f"{feature_file.name} is the features")
            return NodeFeatures(torch.from_numpy(_read_feature_file(feature_file, nodes)))
        note_unused(notes, [feature_file.name], nodes.path, "the features are those of its columns")
    if fitted is None:
        if settings.text:
            nodes.require(settings.text, "text")
        fitted, unused = ColumnFeatures.fit(nodes, others, settings.text, settings.text_channels)
        for reason, names in unused.items():
            note_unused(notes, names, nodes.path, _explain_unused(reason))
        if not fitted.columns:
            return NodeFeatures(torch.empty(nodes.columns.num_rows, 0))
        if not fitted.is_plain:
            notes.append(Note("columns-as-features", f"Features of {nodes.path.name}: {fitted.describe()}."))
    return NodeFeatures(torch.from_numpy(fitted.transform(nodes)), fitted.feature_names, fitted)


def _not_features(settings: DataSettings) -> set[str]:
    """Ids, labels and splits, whatever their columns are called: a second column of labels would be the answer."""
    chosen = {settings.id_column, settings.label_column, settings.split_column, settings.text}
    return chosen | {DataSettings.id_column, DataSettings.label_column, DataSettings.split_column}


def _explain_unused(reason: str) -> str:
    hint = "; the setting text names one whose words become features" if reason.startswith("different") else ""
    return f"their cells are {reason}{hint}"


def _read_feature_file(path: Path, nodes: Table) -> np.ndarray:
    with as_input_error(path):
        features = map_array(path)  # it may be larger than the memory
    rows = nodes.columns.num_rows
    if features.ndim != 2 or features.dtype.kind not in "fiub":
        raise InputError(f"{path} must hold numbers in rows and columns, a row for each node")
    if len(features) != rows:
        raise InputError(
            f"{path} has {plural(len(features), 'row')} and {nodes.path.name} has {rows:,}; "
            f"they must be the same nodes in the same order"
        )
    return single_precision(features)


def _numeric_columns(table: Table, names: list[str]) -> dict[str, np.ndarray]:
    """Returns the columns that hold numbers; raises `InputError` for a bad cell in a column that mostly does."""
    used: dict[str, np.ndarray] = {}
    for name in names:
        numbers = parse_numbers(table.columns[name])
        if numbers is None or 2 * len(numbers.bad) >= numbers.filled:
            continue
        check_cells(numbers, table, name, "a number")
        used[name] = numbers.values
    return used


def _stacked(columns: dict[str, np.ndarray]) -> Tensor:
    return torch.from_numpy(single_precision(np.column_stack(list(columns.values()))))


def _label_features(folder: Path, class_names: ClassNames, settings: DataSettings) -> Tensor | None:
    """Returns `label_x` from the table `labels`: its row for each class, in the order of the classes."""
    path = optional_table_path(folder, "labels")
    if path is None:
        return None
    name = settings.label_column
    table = read_table(path, [name])
    column = table.column(name, "label_column")
    used = _numeric_columns(table, [other for other in table.names if other != name])
    if not used:
        raise InputError(f"{table.path} has no numeric column; give the features of the labels, a column for each")
    rows = find(pa.array(class_names), table.keys(column, name))
    if (rows < 0).any():
        missing = class_names[_first(rows < 0)]
        raise InputError(f"{table.path} has no row for the class {short_repr(missing)}; every class needs one")
    return _stacked(used)[torch.from_numpy(rows)]


def _label_adjacency(folder: Path, class_names: ClassNames, settings: DataSettings) -> Tensor | None:
    """Returns `label_adjacency` from the table `label_edges`, row = target."""
    path = optional_table_path(folder, "label_edges")
    if path is None:
        return None
    classes = pa.array(class_names)
    edges = read_edges(open_edges(path), classes, classes, settings, noun="class")
    adjacency = np.zeros((len(classes), len(classes)), np.float32)
    source, target = edges.edge_index
    adjacency[target, source] = 1 if edges.weight is None else edges.weight
    return torch.from_numpy(adjacency)


def note_unused(notes: list[Note], names: list[str], path: Path, reason: str) -> None:
    """Adds a note that names the columns that are not used."""
    if names:
        notes.append(Note("columns-ignored", f"Left aside in {path.name}: {some_of(names, NAMED)}; {reason}."))


def _first(mask: np.ndarray) -> int:
    return int(np.argmax(mask))
