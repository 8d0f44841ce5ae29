"""A folder of tables with several node types: `nodes/<type>` and `edges/<type>__<relation>__<type>`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch

from legnn.config.data import DataSettings
from legnn.data.node_types import Relation
from legnn.data.splits import to_masks
from legnn.errors import InputError
from legnn.io.columns import join_keys, sorted_unique
from legnn.io.edge_tables import open_edges, read_edges, read_end_ids
from legnn.io.table_features import ColumnFeatures, TableFeatures
from legnn.io.table_files import Table, table_path
from legnn.io.tables import note_unused, read_features, read_ids, read_labels, read_node_table, read_split
from legnn.lazy import lazy_module
from legnn.notes import Note

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

pyg_data = lazy_module("torch_geometric.data")

SUFFIXES = (".parquet", ".csv")
SEPARATOR = "__"


def has_types(folder: Path) -> bool:
    """Whether a folder holds tables of several node types: it has a folder `edges` where others have a table."""
    return (folder / "edges").is_dir()


def read_typed_folder(
    folder: Path, settings: DataSettings, fitted: TableFeatures | None, *, training: bool = True
) -> HeteroData:
    """Returns the graph of a folder with a table in `nodes` for each type and one in `edges` for each relation.

    `nodes/<type>.npy` beside a node table holds its features, a row for each node. The nodes of a type without a node
    table are the ids in its edges. One node table has labels. The columns of each table become features as `fitted`
    says, or by a new fit if it is None.

    Returns:
        A `HeteroData` as `to_homogeneous` describes, with `notes` and `table_features`.
    """
    known = {} if fitted is None else dict(fitted.tables)
    nodes = _node_tables(folder, settings, known)
    edges = _edge_paths(folder)
    labeled = _labeled_type(nodes, folder, settings, training)
    text_types = _text_types(nodes, folder, settings)
    ids = {kind: read_ids(table, settings) for kind, table in nodes.items()}
    ids |= _ids_in_edges(edges, set(nodes), settings)
    graph, notes = pyg_data.HeteroData(), list[Note]()
    columns: dict[str, ColumnFeatures] = {}
    for kind in ids:
        graph[kind].node_id = ids[kind].to_numpy(zero_copy_only=False)
    for kind, table in nodes.items():
        fields: dict[str, Any] = {}
        if kind == labeled:
            fields["y"], fields["class_names"] = read_labels(table, settings, training)
            if (split := read_split(table, settings)) is not None:
                fields |= to_masks(split)
        of_type = settings if kind in text_types else replace(settings, text=DataSettings.text)
        features = read_features(folder / "nodes" / f"{kind}.npy", table, of_type, known.get(kind), notes)
        if features.x.size(1):
            fields |= {"x": features.x, "feature_names": features.names}
        if features.columns is not None:
            columns[kind] = features.columns
        graph[kind].update(fields)
    for relation, path in edges.items():
        source, _, target = relation
        noun = (f"{source} node", f"{target} node")
        table_edges = read_edges(
            open_edges(path), ids[source], ids[target], settings, noun=noun, is_weight_optional=True
        )
        graph[relation].edge_index = torch.from_numpy(table_edges.edge_index)
        if table_edges.weight is not None:
            graph[relation].edge_weight = torch.from_numpy(table_edges.weight)
        note_unused(notes, table_edges.unused, path, "edges have ends and a weight alone")
    if not any(graph[relation].edge_index.numel() for relation in edges):
        raise InputError(f"{folder / 'edges'} has no edges; a graph needs at least one")
    graph.notes = notes
    graph.table_features = TableFeatures(columns) if columns else None
    return graph


def _paths(folder: Path) -> dict[str, Path]:
    """Returns the tables of a folder by their stems, in alphabetical order."""
    files = folder.iterdir() if folder.is_dir() else ()
    stems = {path.stem for path in files if path.suffix in SUFFIXES and not path.name.startswith(".")}
    return {stem: table_path(folder, stem) for stem in sorted(stems)}


def _node_tables(folder: Path, settings: DataSettings, known: dict[str, ColumnFeatures]) -> dict[str, Table]:
    for name in ("nodes.parquet", "nodes.csv", "edges.parquet", "edges.csv"):
        if (folder / name).is_file():
            raise InputError(
                f"{folder} has {name} beside the folder edges; a graph of one node type has tables nodes and edges, "
                f"one of several has folders nodes and edges, so remove what is not meant"
            )
    paths = _paths(folder / "nodes")
    tables = {kind: read_node_table(path, settings, known.get(kind)) for kind, path in paths.items()}
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
    paths: dict[Relation, Path] = {}
    for stem, path in _paths(folder / "edges").items():
        parts = stem.split(SEPARATOR)
        if len(parts) != 3 or not all(parts):
            raise InputError(
                f"{path} does not say what it joins; a table of edges is called "
                f"<type>{SEPARATOR}<relation>{SEPARATOR}<type>, such as author{SEPARATOR}writes{SEPARATOR}paper.parquet"
            )
        paths[parts[0], parts[1], parts[2]] = path
    return paths


def _labeled_type(nodes: dict[str, Table], folder: Path, settings: DataSettings, training: bool) -> str | None:
    """Returns the one type whose table has labels; if not `training`, there may be none."""
    name = settings.label_column
    with_column = {kind: table.columns[name] for kind, table in nodes.items() if name in table.names}
    labeled = [kind for kind, column in with_column.items() if nodes[kind].keys(column, name).null_count < len(column)]
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


def _text_types(nodes: dict[str, Table], folder: Path, settings: DataSettings) -> list[str]:
    """Returns the types whose tables have the text column: of each, the words are those of its own texts."""
    types = [kind for kind, table in nodes.items() if settings.text and settings.text in table.names]
    if settings.text and not types:
        raise InputError(f"no table in {folder / 'nodes'} has a column {settings.text!r}; text names a column of one")
    return types


def _ids_in_edges(edges: dict[Relation, Path], known: set[str], settings: DataSettings) -> dict[str, pa.Array]:
    """Returns the sorted ids of the types without a node table."""
    named: dict[str, list[pa.Array]] = {}
    for (source, _, target), path in edges.items():
        ends = ((source, settings.source_column, "source_column"), (target, settings.target_column, "target_column"))
        for kind, column, setting in ends:
            if kind not in known:
                named.setdefault(kind, []).append(read_end_ids(open_edges(path), column, setting))
    return {kind: sorted_unique(join_keys(parts)) for kind, parts in named.items()}
