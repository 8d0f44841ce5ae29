"""A folder with a node table and an edge table, as CSV or Parquet."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data, HeteroData

from legnn.config.data import DataSettings
from legnn.data.complete import MASKS
from legnn.errors import InputError, did_you_mean, first_line, plural
from legnn.io.arrays import map_array
from legnn.io.columns import SPLIT_NAMES, as_text, find, in_order, parse_numbers, single_precision
from legnn.io.edge_tables import read_edges
from legnn.io.table_files import Table, optional_table_path, read_columns, table_path
from legnn.io.text_features import TextFeatures

FEATURE_FILE = "features.npy"


def read_table_folder(
    folder: Path, settings: DataSettings, text_features: TextFeatures | None, *, training: bool = True
) -> Data:
    """The graph of a folder with `nodes` and `edges` (`.parquet` or `.csv`) and optionally `features.npy`.

    Prior knowledge of the labels may lie beside them: `labels` (a row for each class: its name and numeric columns, its
    features) and `label_edges` (`source`, `target`, optional `weight`).

    Returns:
        A plain `Data`; without masks if the node table has no split column, so that `complete` draws one. Without
        `training` the label column may be missing, too.
    """
    node_path, edge_path = table_path(folder, "nodes"), table_path(folder, "edges")
    keys = [settings.id_column, settings.label_column, settings.split_column, settings.text or None]
    nodes = read_table(node_path, keys)
    if nodes.columns.num_rows == 0:
        raise InputError(f"{nodes.path} has no rows; a graph needs nodes")
    ids = node_ids(nodes, settings)
    data = Data(notes=[], node_id=ids.to_numpy(zero_copy_only=False))
    add_labels(data, nodes, settings, training)
    add_split(data, nodes, settings)
    add_features(data, folder / FEATURE_FILE, nodes, settings, text_features)
    if data.get("x") is None:
        raise InputError(
            f"{folder} has no features; give numeric columns in {nodes.path.name}, "
            f"a {FEATURE_FILE} with a row for each node, or the name of a text column as text"
        )
    _add_edges(data, edge_path, ids, settings)
    if training:
        _add_label_features(data, folder, settings)
        _add_label_edges(data, folder, settings)
    return data


def read_table(path: Path, keys: list[str | None]) -> Table:
    """A table whose columns `keys` stay as they are written; None stands for no column."""
    return Table(path, read_columns(path, [key for key in keys if key is not None]))


def node_ids(nodes: Table, settings: DataSettings) -> pa.Array:
    """The ids of a node table, each once and none missing."""
    name = settings.id_column
    ids = nodes.keys(nodes.column(name, "id_column"), name)
    if ids.null_count:
        position = _first(pc.is_null(ids).to_numpy(zero_copy_only=False))
        raise InputError(f"{nodes.path}, {nodes.row(position)}, has no id in column {name!r}; every node needs one")
    if pa.types.is_floating(ids.type):
        ids = as_text(ids)  # fractions make poor keys: 0.1 is known by how it is written
    where_first = find(ids, ids)
    again = where_first != np.arange(len(ids))
    if again.any():
        position = _first(again)
        raise InputError(
            f"id {ids[position].as_py()!r} of {nodes.path} is there twice, in {nodes.row(int(where_first[position]))} "
            f"and {nodes.row(position)}; ids must differ"
        )
    return ids


def add_labels(data: Data, nodes: Table, settings: DataSettings, training: bool) -> None:
    """`y` and `class_names` from the label column."""
    name = settings.label_column
    column = nodes.column(name, "label_column") if training else nodes.optional_column(name, "label_column")
    if column is None:
        return
    labels = nodes.keys(column, name)
    classes = in_order(labels)
    data.class_names = classes.to_pylist()
    data.y = torch.from_numpy(find(labels, classes))


def add_split(data: Data, nodes: Table, settings: DataSettings) -> None:
    """The three masks from the split column, if there is one."""
    name = settings.split_column
    column = nodes.optional_column(name, "split_column")
    if column is None:
        return
    written = as_text(nodes.keys(column, name))
    part = find(pc.utf8_lower(pc.utf8_trim_whitespace(written)), pa.array(list(SPLIT_NAMES)))
    misspelt = (part < 0) & pc.is_valid(written).to_numpy(zero_copy_only=False)
    if misspelt.any():
        position = _first(misspelt)
        value = written[position].as_py()
        raise InputError(
            f"{nodes.path}, {nodes.row(position)}, column {name!r} has {value!r}{did_you_mean(value, SPLIT_NAMES)}; "
            f"a split is train, val (or valid, validation), test, or empty"
        )
    # -1, not in any split, picks the last entry: a part no mask has
    part = np.array([*SPLIT_NAMES.values(), -1])[part]
    for number, mask in enumerate(MASKS):
        data[mask] = torch.from_numpy(part == number)


def add_features(
    data: Data, feature_file: Path, nodes: Table, settings: DataSettings, text_features: TextFeatures | None
) -> None:
    """`x` from the text column, the feature file or the numeric columns; no `x` where there is none of them."""
    taken = {settings.id_column, settings.label_column, settings.split_column, settings.text}
    others = [name for name in nodes.columns.column_names if name not in taken]
    has_file = feature_file.is_file()
    if settings.text:
        _add_text_features(data, nodes, settings, text_features)
        unused = [*others, feature_file.name] if has_file else others
        note_ignored(data, unused, nodes.path, f"the features are the text of column {settings.text!r}")
    elif has_file:
        data.x = torch.from_numpy(_read_feature_file(feature_file, nodes))
        note_ignored(data, others, nodes.path, f"{feature_file.name} is the features")
    else:
        _add_numeric_columns(data, nodes, others)


def _add_text_features(data: Data, nodes: Table, settings: DataSettings, fitted: TextFeatures | None) -> None:
    column = nodes.column(settings.text, "text")
    texts = as_text(nodes.keys(column, settings.text)).fill_null("").to_pylist()
    data.text_features = fitted if fitted is not None else TextFeatures.fit(texts, settings.text_channels)
    data.x = torch.from_numpy(data.text_features.transform(texts))


def _read_feature_file(path: Path, nodes: Table) -> np.ndarray:
    try:
        features = _map_or_read(path)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} could not be read: {first_line(error)}") from error
    rows = nodes.columns.num_rows
    if not isinstance(features, np.ndarray) or features.ndim != 2 or features.dtype.kind not in "fiub":
        raise InputError(f"{path} must hold numbers in rows and columns, a row for each node")
    if len(features) != rows:
        raise InputError(
            f"{path} has {plural(len(features), 'row')} and {nodes.path.name} has {rows:,}; "
            f"they must be the same nodes in the same order"
        )
    return single_precision(features)


def _map_or_read(path: Path) -> np.ndarray:
    """The array of the file; where it can be used as it is, it is mapped: it may be larger than the memory."""
    try:
        features = map_array(path)
    except (OSError, ValueError):
        features = np.load(path, allow_pickle=False)  # says what is wrong with the file, which mapping does not
    return features


def _numeric_columns(table: Table, names: list[str]) -> dict[str, np.ndarray]:
    """Those of the columns that hold numbers; a column that mostly does and has a bad cell is an error."""
    used: dict[str, np.ndarray] = {}
    for name in names:
        numbers = parse_numbers(table.columns[name])
        if numbers is None or 2 * len(numbers.bad) >= numbers.filled:
            continue
        if len(numbers.bad):
            position = int(numbers.bad[0])
            raise InputError(
                f"{table.path}, {table.row(position)}, column {name!r} has "
                f"{table.columns[name][position].as_py()!r} where the other rows have numbers; "
                f"write a number ({plural(len(numbers.bad), 'such cell')})"
            )
        used[name] = numbers.values
    return used


def _add_numeric_columns(data: Data, nodes: Table, names: list[str]) -> None:
    used = _numeric_columns(nodes, names)
    if used:
        data.x = torch.from_numpy(single_precision(np.column_stack(list(used.values()))))
        data.feature_names = list(used)
    note_ignored(data, [name for name in names if name not in used], nodes.path, "their cells are not numbers")


def _add_edges(data: Data, path: Path, ids: pa.Array, settings: DataSettings) -> None:
    edges = read_edges(path, ids, ids, settings)
    if edges.edge_index.shape[1] == 0:
        raise InputError(f"{path} has no rows; a graph needs at least one edge")
    data.edge_index = torch.from_numpy(edges.edge_index)
    if edges.weight is not None:
        data.edge_weight = torch.from_numpy(edges.weight)
    note_ignored(data, edges.ignored, path, "edges have ends and a weight alone")


def _add_label_features(data: Data, folder: Path, settings: DataSettings) -> None:
    """`label_x` from the table `labels`: its row for each class, in the order of the classes."""
    path = optional_table_path(folder, "labels")
    if path is None:
        return
    name = settings.label_column
    table = read_table(path, [name])
    column = table.column(name, "label_column")
    used = _numeric_columns(table, [other for other in table.columns.column_names if other != name])
    if not used:
        raise InputError(f"{table.path} has no numeric column; give the features of the labels, a column for each")
    rows = find(pa.array(data.class_names), table.keys(column, name))
    if (rows < 0).any():
        missing = data.class_names[_first(rows < 0)]
        raise InputError(f"{table.path} has no row for the class {missing!r}; every class needs one")
    data.label_x = torch.from_numpy(single_precision(np.column_stack(list(used.values()))[rows]))


def _add_label_edges(data: Data, folder: Path, settings: DataSettings) -> None:
    """`label_adjacency` from the table `label_edges`, row = target."""
    path = optional_table_path(folder, "label_edges")
    if path is None:
        return
    classes = pa.array(data.class_names)
    edges = read_edges(path, classes, classes, settings, what="class")
    among = np.zeros((len(classes), len(classes)), np.float32)
    source, target = edges.edge_index
    among[target, source] = 1 if edges.weight is None else edges.weight
    data.label_adjacency = torch.from_numpy(among)


def note_ignored(data: Data | HeteroData, names: list[str], path: Path, reason: str) -> None:
    """Tell the user of columns that are not used."""
    if names:
        data.notes.append(f"Left aside in {path.name}: {', '.join(names)}; {reason}.")


def _first(mask: np.ndarray) -> int:
    return int(np.argmax(mask))
