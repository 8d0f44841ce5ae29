"""A folder of tables with several node types: `nodes/<type>` and `edges/<type>__<relation>__<type>`."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import torch
from torch_geometric.data import Data, HeteroData

from legnn.config.data import DataSettings
from legnn.data.typed_edges import Relation
from legnn.errors import InputError
from legnn.io.columns import in_order, join_keys
from legnn.io.edge_tables import read_edges, read_end_ids
from legnn.io.table_files import Table, table_path
from legnn.io.tables import add_features, add_labels, add_split, node_ids, note_ignored, read_table
from legnn.io.text_features import TextFeatures

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
    edges = _edge_paths(folder)
    labeled = _labeled(nodes, folder, settings, training)
    with_text = _with_text(nodes, folder, settings)
    graph, notes = HeteroData(), list[str]()
    ids = {kind: node_ids(table, settings) for kind, table in nodes.items()}
    ids |= _ids_of_edges(edges, set(nodes), settings)
    for kind in ids:
        graph[kind].node_id = ids[kind].to_numpy(zero_copy_only=False)
    for kind, table in nodes.items():
        mine = replace(settings, text=settings.text if kind == with_text else "")
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
    graph.notes = notes
    for relation, path in edges.items():
        _add_relation(graph, relation, path, ids, settings)
    if not any(graph[relation].edge_index.numel() for relation in edges):
        raise InputError(f"{folder / 'edges'} has no edges; a graph needs at least one")
    return graph


def _paths(folder: Path) -> dict[str, Path]:
    """Where the tables of a folder are, by their stems in alphabetical order."""
    files = folder.iterdir() if folder.is_dir() else ()
    stems = {path.stem for path in files if path.suffix in TABLES and not path.name.startswith(".")}
    return {stem: table_path(folder, stem) for stem in sorted(stems)}


def _node_tables(folder: Path, settings: DataSettings) -> dict[str, Table]:
    for name in ("nodes.parquet", "nodes.csv", "edges.parquet", "edges.csv"):
        if (folder / name).is_file():
            raise InputError(
                f"{folder} has {name} beside the folder edges; a graph of one node type has tables nodes and edges, "
                f"one of several has folders nodes and edges, so remove what is not meant"
            )
    keys = [settings.id_column, settings.label_column, settings.split_column, settings.text or None]
    tables = {kind: read_table(path, keys) for kind, path in _paths(folder / "nodes").items()}
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


def _edge_paths(folder: Path) -> dict[Relation, Path]:
    found: dict[Relation, Path] = {}
    for stem, path in _paths(folder / "edges").items():
        parts = stem.split(BETWEEN)
        if len(parts) != 3 or not all(parts):
            raise InputError(
                f"{path} does not say what it joins; a table of edges is called "
                f"<type>{BETWEEN}<relation>{BETWEEN}<type>, such as author{BETWEEN}writes{BETWEEN}paper.parquet"
            )
        found[parts[0], parts[1], parts[2]] = path
    return found


def _labeled(nodes: dict[str, Table], folder: Path, settings: DataSettings, training: bool) -> str | None:
    """The one type whose table has labels; without training there may be none."""
    name = settings.label_column
    with_column = {kind: table for kind, table in nodes.items() if name in table.columns.column_names}
    labeled = [
        kind
        for kind, table in with_column.items()
        if table.keys(table.columns[name], name).null_count < table.columns.num_rows
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
    if not settings.text:
        return None
    found = [kind for kind, table in nodes.items() if settings.text in table.columns.column_names]
    if len(found) != 1:
        which = f"the tables of {' and '.join(found)} have" if found else f"no table in {folder / 'nodes'} has"
        raise InputError(f"{which} a column {settings.text!r}; text names a column of one node table")
    return found[0]


def _ids_of_edges(edges: dict[Relation, Path], known: set[str], settings: DataSettings) -> dict[str, pa.Array]:
    """Ids of the types that have no node table: those their edges name, in order."""
    named: dict[str, list[pa.Array]] = {}
    for (source, _, target), path in edges.items():
        ends = ((source, settings.source_column, "source_column"), (target, settings.target_column, "target_column"))
        for kind, column, setting in ends:
            if kind not in known:
                named.setdefault(kind, []).append(read_end_ids(path, column, setting))
    return {kind: in_order(join_keys(parts)) for kind, parts in named.items()}


def _add_relation(
    graph: HeteroData, relation: Relation, path: Path, ids: dict[str, pa.Array], settings: DataSettings
) -> None:
    source, _, target = relation
    what = (f"{source} node", f"{target} node")
    edges = read_edges(path, ids[source], ids[target], settings, what=what, weight_may_be_missing=True)
    graph[relation].edge_index = torch.from_numpy(edges.edge_index)
    if edges.weight is not None:
        graph[relation].edge_weight = torch.from_numpy(edges.weight)
    note_ignored(graph, edges.ignored, path, "edges have ends and a weight alone")
