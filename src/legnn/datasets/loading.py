"""From a name, a folder of tables or a PyG object to one validated `Data`."""

import os
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, HeteroData

from legnn.config.data import DataSettings
from legnn.data.complete import complete
from legnn.data.heterogeneous import to_homogeneous
from legnn.data.prepare import prepare
from legnn.data.statistics import edge_homophily
from legnn.data.validate import validate
from legnn.datasets.catalog import CATALOG, NamedSet
from legnn.datasets.download import data_folder
from legnn.errors import InputError, did_you_mean
from legnn.io.prepared import (
    CARD,
    check_options,
    check_place,
    check_target,
    check_text,
    is_prepared,
    read_prepared,
    write_prepared,
)
from legnn.io.tables import read_table_folder
from legnn.io.text_features import TextFeatures
from legnn.io.typed_tables import has_types, read_typed_folder


def load(
    source: str | Path | Data | HeteroData | DataSettings = "digits",
    *,
    training: bool = True,
    text_features: TextFeatures | None = None,
    target_type: str | None = None,
    **options: Any,
) -> Data:
    """Load a graph, check it, and prepare its edges.

    Args:
        source: name of the catalog, folder of tables or prepared folder (its path, or its name under `LEGNN_DATA`), a
            `Data` or `HeteroData` in memory (left as it is), or settings.
        training: False for a graph that is only to be predicted: labels and splits may be missing, and none is drawn.
        text_features: fitted on other nodes; used for the text column in place of a new fit.
        target_type: of several node types, the one to be predicted; None for the one that has labels.
        **options: fields of `DataSettings`.

    Returns:
        `Data` with `x` float32 [M, F], `y` int64 [M] (-1 is unlabeled), `edge_index` int64 [2, E], `train_mask`,
        `val_mask` and `test_mask` bool [M], `class_names` (list, by class), `node_id` (array [M]), `name`, `notes`
        (sentences for the user), `feature_names` (list [F], or None), `text_features` (or None), and from before the
        edges were prepared `raw_edges` and `homophily`. Weighted edges have `edge_weight` float32 [E]. A prepared
        folder has its edges in compressed rows, `rowptr` [M + 1] and `col` [E], in place of `edge_index`. A graph of
        several node types has `node_type` int64 [M], an index into `type_names` (list), and `target_mask` bool [M], the
        nodes of the type that has labels; `heterogeneous.to_homogeneous` says more.

    Raises:
        InputError: where the source, an option or the data cannot be used, in one sentence.
    """
    settings = _settings(source, options)
    if isinstance(source, Data) and source.get("prepared_with") is not None:
        check_options(source.name, settings, source.prepared_with)
        check_target(source.name, source, target_type)
        return copy(source)
    if text_features is not None and not settings.text:
        raise InputError("text_features are given, but no text column; say which one as text")
    if isinstance(source, Data | HeteroData):
        _refuse_text(settings, f"a {type(source).__name__} in memory")
        name = source.get("name")
        name = name if isinstance(name, str) else "the graph"
        plain = _plain(source, settings, name, training, target_type)
        data = complete(plain, name=name, split=_split(settings), draw=training)
    elif settings.source in CATALOG and not isinstance(source, Path):
        data = _load_named(CATALOG[settings.source], settings)
    else:
        folder = _existing_folder(settings.source)
        if is_prepared(folder):
            data = read_prepared(folder)
            check_options(folder, settings, data.prepared_with)
            check_target(folder, data, target_type)
            if text_features is not None:
                check_text(folder, data, text_features)
            return data
        name = folder.resolve().name
        read = read_typed_folder if has_types(folder) else read_table_folder
        found = read(folder, settings, text_features, training=training)
        plain = _plain(found, settings, name, training, target_type)
        data = complete(plain, name=name, split=_split(settings), draw=training)
    validate(data, training=training)
    data.raw_edges = data.edge_index.shape[1]
    data.homophily = edge_homophily(data.edge_index, data.y)
    return prepare(
        data,
        undirected=settings.undirected,
        remove_duplicates=settings.remove_duplicates,
        self_loops=settings.self_loops,
    )


def prepare_folder(source: str | Path | Data | HeteroData | DataSettings, out: str | Path, **options: Any) -> Data:
    """Load a graph as `load` does and write it to the folder `out`, which `load` then only has to map into memory.

    Args:
        source: as in `load`.
        out: new or empty.
        **options: fields of `DataSettings`.

    Returns:
        The graph that was written.
    """
    check_place(Path(out))
    data = load(source, **options)
    settings = _settings(source, options)
    if isinstance(source, Data | HeteroData):
        settings = replace(settings, source=data.name)
    write_prepared(Path(out), data, settings)
    return data


def _plain(
    graph: Data | HeteroData, settings: DataSettings, name: str, training: bool = True, target_type: str | None = None
) -> Data:
    """The graph with its nodes in one table, whatever their types."""
    if isinstance(graph, Data):
        return graph
    return to_homogeneous(graph, settings, name=name, training=training, target_type=target_type)


def _settings(source: str | Path | Data | HeteroData | DataSettings, options: dict[str, Any]) -> DataSettings:
    known = [field.name for field in fields(DataSettings)]
    for name in options:
        if name not in known:
            raise InputError(f"unknown option {name!r}{did_you_mean(name, known)}; choose from {', '.join(known)}")
    if isinstance(source, DataSettings):
        return replace(source, **options)
    if isinstance(source, Data | HeteroData):
        return DataSettings(**options)
    if isinstance(source, str | Path):
        return DataSettings(source=str(source), **options)
    raise InputError(
        f"source must be a name, a folder, a Data, a HeteroData or DataSettings, got {type(source).__name__}"
    )


def _load_named(entry: NamedSet, settings: DataSettings) -> Data:
    _refuse_text(settings, f"the named data set {entry.name!r}")
    data = _plain(entry.read(_split(settings)), settings, entry.name)
    if entry.class_names is not None:
        data.class_names = list(entry.class_names)
    data.notes = [*(data.get("notes") or []), *entry.notes]
    return complete(data, name=entry.name, split=None if entry.reads_split else _split(settings))


def _split(settings: DataSettings) -> int | None:
    return None if settings.split == "default" else settings.split


def _refuse_text(settings: DataSettings, what: str) -> None:
    if settings.text:
        raise InputError(f"text names a column of a node table, and {what} has none; leave text out")


def _existing_folder(source: str) -> Path:
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise InputError(f"{source} is a file; give the folder that holds nodes and edges")
    if os.sep in source or source.startswith((".", "~")):
        raise InputError(f"there is no folder {source}")
    kept = data_folder() / source
    if has_types(kept) or any((kept / name).is_file() for name in ("nodes.parquet", "nodes.csv", CARD)):
        return kept
    names = ", ".join(sorted(CATALOG))
    raise InputError(
        f"unknown data set {source!r}{did_you_mean(source, CATALOG)}; choose from {names}, or give a folder of tables"
    )
