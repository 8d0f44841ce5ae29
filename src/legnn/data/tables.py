"""A folder with a node table and an edge table, as CSV or Parquet."""

import csv
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import torch
from torch_geometric.data import Data

from legnn.data.columns import SPLIT_NAMES, as_keys, as_text, find, in_order, parse_numbers
from legnn.data.complete import MASKS
from legnn.data.features import TextFeatures
from legnn.data.settings import DataSettings
from legnn.errors import InputError
from legnn.wording import did_you_mean, first_line, plural

FEATURE_FILE = "features.npy"
ROW_NUMBERS = re.compile(r"|__index_level_\d+__|Unnamed: 0")


@dataclass(frozen=True)
class Table:
    """A table and where it came from."""

    path: Path
    columns: pa.Table

    @property
    def is_text(self) -> bool:
        """Whether it was read from CSV, where every cell is text."""
        return self.path.suffix == ".csv"

    def column(self, name: str, setting: str) -> pa.ChunkedArray:
        """The column, or an error that lists the columns there are."""
        if name not in self.columns.column_names:
            there = ", ".join(map(repr, self.columns.column_names))
            raise InputError(
                f"{self.path} has no column {name!r}{did_you_mean(name, self.columns.column_names)}; "
                f"it has {there}, and {setting} says which to use"
            )
        return self.columns[name]

    def optional_column(self, name: str, setting: str) -> pa.ChunkedArray | None:
        """The column, or None if it is not there and nobody asked for it by a name of their own."""
        if name == getattr(DataSettings, setting) and name not in self.columns.column_names:
            return None
        return self.column(name, setting)

    def row(self, position: int) -> str:
        """How the user finds the row: the line of a CSV file, the row of a Parquet file."""
        if not self.is_text:
            return f"row {position} (counting from 0)"
        # quoted line breaks and empty lines make the line more than the position: count as an editor does
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            try:
                row = next(islice(filter(None, reader), position + 1, None))
            except csv.Error:  # a cell longer than the csv module reads
                return f"row {position + 1} below the header"
            return f"line {reader.line_num - sum(cell.count(chr(10)) for cell in row)}"


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
    nodes, edges = _read_table(folder, "nodes", settings), _read_table(folder, "edges", settings)
    if nodes.columns.num_rows == 0:
        raise InputError(f"{nodes.path} has no rows; a graph needs nodes")
    if edges.columns.num_rows == 0:
        raise InputError(f"{edges.path} has no rows; a graph needs at least one edge")
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
    _add_edges(data, edges, ids, settings)
    if training:
        _add_label_features(data, folder, settings)
        _add_label_edges(data, folder, settings)
    return data


def _read_table(folder: Path, stem: str, settings: DataSettings) -> Table:
    table = _read_optional_table(folder, stem, settings)
    if table is None:
        raise InputError(f"{folder} has no {stem}.parquet and no {stem}.csv; a folder of tables needs one of them")
    return table


def _read_optional_table(folder: Path, stem: str, settings: DataSettings) -> Table | None:
    paths = [folder / f"{stem}.parquet", folder / f"{stem}.csv"]
    there = [path for path in paths if path.is_file()]
    if len(there) == 2:
        raise InputError(f"{folder} has both {stem}.parquet and {stem}.csv; remove the one that is not meant")
    return Table(there[0], read_columns(there[0], keys=_key_columns(settings, stem))) if there else None


def _key_columns(settings: DataSettings, stem: str) -> list[str]:
    if stem in ("edges", "label_edges"):
        return [settings.source_column, settings.target_column]
    if stem == "labels":
        return [settings.label_column]
    text = [settings.text] if settings.text else []
    return [settings.id_column, settings.label_column, settings.split_column, *text]


def read_columns(path: Path, keys: list[str]) -> pa.Table:
    """The columns of a CSV or Parquet file; in CSV the `keys` stay text exactly as written."""
    try:
        columns = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path, keys)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} could not be read: {first_line(error)}") from error
    names = columns.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} has two columns named {twice!r}; names must differ")
    # pandas writes its row numbers along; as a feature they would tell the order of the rows
    return columns.drop_columns([name for name in names if ROW_NUMBERS.fullmatch(name)])


def _read_parquet(path: Path) -> pa.Table:
    # without partitioning: a folder called year=2020 is not a column
    return pq.read_table(path, partitioning=None)


def _read_csv(path: Path, keys: list[str]) -> pa.Table:
    return pacsv.read_csv(
        path,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        # only the empty cell is missing: a class may be called NA
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(keys, pa.string()), null_values=[""], strings_can_be_null=True
        ),
    )


def keys_of(table: Table, column: pa.ChunkedArray, name: str) -> pa.Array:
    """Ids or classes of a column, as `as_keys` gives them."""
    try:
        return as_keys(column, from_text=table.is_text)
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} of {table.path} is of the type {column.type}; it must hold text or numbers"
        ) from error


def node_ids(nodes: Table, settings: DataSettings) -> pa.Array:
    """The ids of a node table, each once and none missing."""
    name = settings.id_column
    ids = keys_of(nodes, nodes.column(name, "id_column"), name)
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
    labels = keys_of(nodes, column, name)
    classes = in_order(labels)
    data.class_names = classes.to_pylist()
    data.y = torch.from_numpy(find(labels, classes))


def add_split(data: Data, nodes: Table, settings: DataSettings) -> None:
    """The three masks from the split column, if there is one."""
    name = settings.split_column
    column = nodes.optional_column(name, "split_column")
    if column is None:
        return
    written = as_text(keys_of(nodes, column, name))
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
    if settings.text is not None:
        _add_text_features(data, nodes, settings, text_features)
        unused = [*others, feature_file.name] if has_file else others
        _note_ignored(data, unused, nodes, f"the features are the text of column {settings.text!r}")
    elif has_file:
        data.x = torch.from_numpy(_read_feature_file(feature_file, nodes))
        _note_ignored(data, others, nodes, f"{feature_file.name} is the features")
    else:
        _add_numeric_columns(data, nodes, others)


def _add_text_features(data: Data, nodes: Table, settings: DataSettings, fitted: TextFeatures | None) -> None:
    assert settings.text is not None
    column = nodes.column(settings.text, "text")
    texts = as_text(keys_of(nodes, column, settings.text)).fill_null("").to_pylist()
    data.text_features = fitted if fitted is not None else TextFeatures.fit(texts, settings.text_channels)
    data.x = torch.from_numpy(data.text_features.transform(texts))


def _read_feature_file(path: Path, nodes: Table) -> np.ndarray:
    try:
        features = np.load(path, allow_pickle=False)
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
    return _single_precision(features)


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
        data.x = torch.from_numpy(_single_precision(np.column_stack(list(used.values()))))
        data.feature_names = list(used)
    _note_ignored(data, [name for name in names if name not in used], nodes, "their cells are not numbers")


def _single_precision(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and validation names the node
        return np.ascontiguousarray(numbers, dtype=np.float32)


def _add_edges(data: Data, edges: Table, ids: pa.Array, settings: DataSettings) -> None:
    ends = [
        ends_of(edges, ids, name, setting, "node")
        for name, setting in ((settings.source_column, "source_column"), (settings.target_column, "target_column"))
    ]
    data.edge_index = torch.stack(ends)
    weight = edges.optional_column(settings.weight_column, "weight_column")
    if weight is not None:
        data.edge_weight = torch.from_numpy(weights_of(edges, weight, settings.weight_column))
    used = {settings.source_column, settings.target_column, settings.weight_column}
    ignored = [name for name in edges.columns.column_names if name not in used]
    _note_ignored(data, ignored, edges, "edges have ends and a weight alone")


def ends_of(edges: Table, ids: pa.Array, name: str, setting: str, what: str) -> torch.Tensor:
    """One end of each edge, as positions in `ids`."""
    keys = keys_of(edges, edges.column(name, setting), name)
    position = find(keys, ids)
    unknown = position < 0
    if unknown.any():
        row = _first(unknown)
        value = keys[row].as_py()
        named = f"no {what}" if value is None else f"{what} {value!r}"
        raise InputError(
            f"{edges.path}, {edges.row(row)}, column {name!r} names {named}, which is not in the node table "
            f"({plural(int(unknown.sum()), 'such edge')}); every end of an edge must be "
            f"{'a label of some node' if what == 'class' else 'an id of a node'}"
        )
    return torch.from_numpy(position)


def _add_label_features(data: Data, folder: Path, settings: DataSettings) -> None:
    """`label_x` from the table `labels`: its row for each class, in the order of the classes."""
    table = _read_optional_table(folder, "labels", settings)
    if table is None:
        return
    name = settings.label_column
    column = table.column(name, "label_column")
    used = _numeric_columns(table, [other for other in table.columns.column_names if other != name])
    if not used:
        raise InputError(f"{table.path} has no numeric column; give the features of the labels, a column for each")
    rows = find(pa.array(data.class_names), keys_of(table, column, name))
    if (rows < 0).any():
        missing = data.class_names[_first(rows < 0)]
        raise InputError(f"{table.path} has no row for the class {missing!r}; every class needs one")
    data.label_x = torch.from_numpy(_single_precision(np.column_stack(list(used.values()))[rows]))


def _add_label_edges(data: Data, folder: Path, settings: DataSettings) -> None:
    """`label_adjacency` from the table `label_edges`, row = target."""
    table = _read_optional_table(folder, "label_edges", settings)
    if table is None:
        return
    classes = pa.array(data.class_names)
    among = torch.zeros(len(classes), len(classes))
    source, target = (
        ends_of(table, classes, column, setting, "class")
        for column, setting in ((settings.source_column, "source_column"), (settings.target_column, "target_column"))
    )
    weight = table.optional_column(settings.weight_column, "weight_column")
    values = np.ones(len(source), np.float32) if weight is None else weights_of(table, weight, settings.weight_column)
    among[target, source] = torch.from_numpy(values)
    data.label_adjacency = among


def weights_of(edges: Table, column: pa.ChunkedArray, name: str) -> np.ndarray:
    """The weights of an edge table, finite and above 0."""
    numbers = parse_numbers(column)
    if numbers is None:
        raise InputError(f"column {name!r} of {edges.path} is of the type {column.type}; weights must be numbers")
    weights = _single_precision(numbers.values)
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        position = _first(wrong)
        value = column[position].as_py()
        shown = "nothing" if value is None else repr(value)
        raise InputError(
            f"{edges.path}, {edges.row(position)}, column {name!r} has {shown}; "
            f"a weight must be a finite number above 0"
        )
    return weights


def _note_ignored(data: Data, names: list[str], table: Table, reason: str) -> None:
    if names:
        data.notes.append(f"Left aside in {table.path.name}: {', '.join(names)}; {reason}.")


def _first(mask: np.ndarray) -> int:
    return int(np.argmax(mask))
