"""A folder of tables with several node types: `nodes/<type>` and `edges/<type>__<relation>__<type>`."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data, HeteroData

from legnn.data.columns import as_text, in_order
from legnn.data.features import TextFeatures
from legnn.data.settings import DataSettings
from legnn.data.tables import (
    Table,
    add_features,
    add_labels,
    add_split,
    ends_of,
    keys_of,
    node_ids,
    read_columns,
    weights_of,
)
from legnn.data.typed_edges import Relation
from legnn.errors import InputError

TABLES = (".parquet", ".csv")
BETWEEN = "__"


def has_types(folder: Path) -> bool:
    """Whether a folder holds tables of several node types: it has a folder `edges` where others have a table."""
    return (folder / "edges").is_dir()


def read_typed_folder(
    folder: Path, settings: DataSettings, text_features: TextFeatures | None, *, training: bool = True
) -> HeteroData:
    """The graph of a folder with a table in `nodes` for each type and one in `edges` for each relation.

    `nodes/<type>.npy` beside a node table holds its features, a row for each node. A type that has no node table is
    made of the ids that its edges name. One node table has labels, and one the text column, if there is any.

    Returns:
        A `HeteroData` whose types have `node_id` and, where they are known, `x` and `feature_names`; the labeled one
        has `y`, `class_names` and, with a split column, masks.
    """
    nodes = _node_tables(folder, settings)
    edges = _edge_tables(folder, settings)
    labeled = _labeled(nodes, folder, settings, training)
    with_text = _with_text(nodes, folder, settings)
    graph, notes = HeteroData(), list[str]()
    ids = {kind: node_ids(table, settings) for kind, table in nodes.items()}
    ids |= _ids_of_edges(edges, set(nodes), settings)
    for kind in ids:
        graph[kind].node_id = ids[kind].to_numpy(zero_copy_only=False)
    for kind, table in nodes.items():
        mine = replace(settings, text=settings.text if kind == with_text else None)
        found = Data(notes=notes)
        if kind == labeled:
            add_labels(found, table, settings, training)
            add_split(found, table, settings)
        add_features(found, folder / "nodes" / f"{kind}.npy", table, mine, text_features)
        if found.get("text_features") is not None:
            graph.text_features = found.text_features
        for field in ("x", "feature_names", "y", "class_names", "train_mask", "val_mask", "test_mask"):
            if found.get(field) is not None:
                graph[kind][field] = found[field]
    for relation, table in edges.items():
        _add_relation(graph, relation, table, ids, settings)
    graph.notes = notes
    return graph


def _tables(folder: Path, keys: list[str]) -> dict[str, Table]:
    """The tables of a folder by their stems, in alphabetical order."""
    found: dict[str, Table] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in TABLES and not path.name.startswith("."):
            if path.stem in found:
                raise InputError(
                    f"{folder} has both {path.stem}.parquet and {path.stem}.csv; remove the one that is not meant"
                )
            found[path.stem] = Table(path, read_columns(path, keys))
    return found


def _node_tables(folder: Path, settings: DataSettings) -> dict[str, Table]:
    for name in ("nodes.parquet", "nodes.csv", "edges.parquet", "edges.csv"):
        if (folder / name).is_file():
            raise InputError(
                f"{folder} has {name} beside the folder edges; a graph of one node type has tables nodes and edges, "
                f"one of several has folders nodes and edges, so remove what is not meant"
            )
    keys = [settings.id_column, settings.label_column, settings.split_column]
    tables = _tables(folder / "nodes", [*keys, settings.text] if settings.text else keys)
    if not tables:
        raise InputError(f"{folder / 'nodes'} has no table; at least the type that is to be classified needs one")
    empty = next((table for table in tables.values() if table.columns.num_rows == 0), None)
    if empty is not None:
        raise InputError(f"{empty.path} has no rows; leave the table out, or fill it")
    for file in sorted((folder / "nodes").glob("*.npy")):
        if file.stem not in tables:
            raise InputError(
                f"{file} has no {file.stem}.parquet or {file.stem}.csv beside it; features go with a table of ids, row "
                f"for row"
            )
    return tables


def _edge_tables(folder: Path, settings: DataSettings) -> dict[Relation, Table]:
    found: dict[Relation, Table] = {}
    for stem, table in _tables(folder / "edges", [settings.source_column, settings.target_column]).items():
        parts = stem.split(BETWEEN)
        if len(parts) != 3 or not all(parts):
            raise InputError(
                f"{table.path} does not say what it joins; a table of edges is called "
                f"<type>{BETWEEN}<relation>{BETWEEN}<type>, such as author{BETWEEN}writes{BETWEEN}paper.parquet"
            )
        found[parts[0], parts[1], parts[2]] = table
    if not any(table.columns.num_rows for table in found.values()):
        raise InputError(f"{folder / 'edges'} has no edges; a graph needs at least one")
    return found


def _labeled(nodes: dict[str, Table], folder: Path, settings: DataSettings, training: bool) -> str | None:
    """The one type whose table has labels; without training there may be none."""
    name = settings.label_column
    with_column = {kind: table for kind, table in nodes.items() if name in table.columns.column_names}
    labeled = [
        kind
        for kind, table in with_column.items()
        if keys_of(table, table.columns[name], name).null_count < table.columns.num_rows
    ]
    if len(labeled) > 1:
        first, second = (nodes[kind].path for kind in labeled[:2])
        raise InputError(
            f"{first} and {second} both have labels in column {name!r}; one type alone is classified, "
            f"so take the column out of the other"
        )
    if labeled or not training:
        return labeled[0] if labeled else None
    raise InputError(
        f"no table in {folder / 'nodes'} has labels in a column {name!r}; the type that is to be classified needs it, "
        f"and label_column says which column to use"
    )


def _with_text(nodes: dict[str, Table], folder: Path, settings: DataSettings) -> str | None:
    if settings.text is None:
        return None
    found = [kind for kind, table in nodes.items() if settings.text in table.columns.column_names]
    if len(found) != 1:
        which = f"the tables of {' and '.join(found)} have" if found else f"no table in {folder / 'nodes'} has"
        raise InputError(f"{which} a column {settings.text!r}; text names a column of one node table")
    return found[0]


def _ids_of_edges(edges: dict[Relation, Table], known: set[str], settings: DataSettings) -> dict[str, pa.Array]:
    """Ids of the types that have no node table: those their edges name, in order."""
    named: dict[str, list[pa.Array]] = {}
    for (source, _, target), table in edges.items():
        ends = ((source, settings.source_column, "source_column"), (target, settings.target_column, "target_column"))
        for kind, column, setting in ends:
            if kind in known:
                continue
            keys = keys_of(table, table.column(column, setting), column)
            if keys.null_count:
                row = int(pc.index(keys.is_null(), True).as_py())
                raise InputError(
                    f"{table.path}, {table.row(row)}, has no id in column {column!r}; every edge has two ends"
                )
            named.setdefault(kind, []).append(pc.unique(keys))
    ids = {}
    for kind, parts in named.items():
        alike = len({part.type for part in parts}) == 1 and not pa.types.is_floating(parts[0].type)
        ids[kind] = in_order(pa.concat_arrays(parts if alike else [as_text(part) for part in parts]))
    return ids


def _add_relation(
    graph: HeteroData, relation: Relation, table: Table, ids: dict[str, pa.Array], settings: DataSettings
) -> None:
    source, _, target = relation
    graph[relation].edge_index = torch.stack(
        [
            ends_of(table, ids[source], settings.source_column, "source_column", f"{source} node"),
            ends_of(table, ids[target], settings.target_column, "target_column", f"{target} node"),
        ]
    )
    name = settings.weight_column
    # a name of the user's own need not be in every table
    if name in table.columns.column_names:
        graph[relation].edge_weight = torch.from_numpy(weights_of(table, table.columns[name], name))
