"""`load`: from a name, a folder of tables or an object in memory to one validated `GraphData`."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from legnn.config.data import DataSettings
from legnn.data import GraphData
from legnn.data.raw_graph import RawGraph
from legnn.datasets.catalog import CATALOG, NamedSet
from legnn.datasets.download import Fetch, fetch, on_disk
from legnn.datasets.objects import FORMS, NetworkXGraph, is_frames, is_in_memory, to_pyg
from legnn.errors import InputError, did_you_mean, plural
from legnn.files import data_folder
from legnn.io.prepared_card import CARD
from legnn.lazy import lazy_module
from legnn.locks import hold_folder
from legnn.notes import Note

if TYPE_CHECKING:
    from torch_geometric.data import Data, Dataset, HeteroData

    from legnn.data import pyg
    from legnn.io import TableFeatures, prepared, tables, typed_tables
else:
    # a graph is in one of these forms
    pyg = lazy_module("legnn.data.pyg")
    prepared = lazy_module("legnn.io.prepared")
    tables = lazy_module("legnn.io.tables")
    typed_tables = lazy_module("legnn.io.typed_tables")

Source: TypeAlias = (
    "str | Path | Data | HeteroData | GraphData | DataSettings | Dataset | NetworkXGraph | tuple[Any, ...]"
)


def load(
    source: Source = "digits",
    *,
    training: bool = True,
    table_features: TableFeatures | None = None,
    target_type: str | None = None,
    download: bool = True,
    **options: Any,
) -> GraphData:
    """Loads a graph, checks it, and builds its adjacency.

    Args:
        source: name in the catalog, folder of tables or prepared folder (its path, or its name under `LEGNN_DATA`),
            settings, a `GraphData`, which is returned, or a graph in memory, which is left unchanged: a `Data` or
            `HeteroData`, a PyG data set of one graph, a NetworkX graph (nodes with `x`, `label` or `y`, `split`), a
            tuple `(edges, x, y)` as in `from_arrays`, or two frames `(nodes, edges)` with the columns of the tables.
        training: False for a graph that is only predicted: labels and splits may be missing, and none is drawn.
        table_features: fitted on other tables, by which the columns of these become features.
        target_type: of several node types, the one to be predicted; None for the one that has labels.
        download: whether files of a named data set that are not on disk are downloaded.
        **options: fields of `DataSettings`.

    Raises:
        InputError: if the source, an option or the data cannot be used.
    """
    settings = _settings(source, options)
    if isinstance(source, GraphData):
        prepared.check_loaded(source.name, source, settings, target_type, table_features)
        return source
    if is_frames(source):
        raw = tables.graph_of_frames(*source, settings, table_features, training=training)
        return GraphData.from_raw(raw, replace(settings, source=raw.name), training=training)
    if (in_memory := to_pyg(source)) is not None:
        _refuse_text(settings, f"a {type(source).__name__} in memory")
        return GraphData.from_pyg(in_memory, training=training, target_type=target_type, **options)
    if settings.source in CATALOG and not isinstance(source, Path):
        return _load_named(CATALOG[settings.source], settings, fetch if download else on_disk)
    folder = existing_folder(settings.source)
    if (folder / CARD).is_file():
        graph = prepared.read_prepared(folder)
        prepared.check_loaded(folder, graph, settings, target_type, table_features)
        return graph
    if prepared.is_unfinished(folder):
        raise InputError(f"{folder} is being prepared, or that was cut short; wait for it, or prepare it again")
    if typed_tables.has_types(folder):
        typed = typed_tables.read_typed_folder(folder, settings, table_features, training=training)
        name = folder.resolve().name
        raw = pyg.raw_from_pyg(typed, settings, name=name, training=training, target_type=target_type)
    else:
        raw = tables.read_table_folder(folder, settings, table_features, training=training)
    return GraphData.from_raw(raw, settings, training=training)


def check_source(source: str) -> None:
    """Raises `InputError` for what is neither a named data set nor a folder, as `load` would."""
    if source not in CATALOG:
        existing_folder(source)


def prepare_folder(source: Source, out: str | Path, **options: Any) -> GraphData:
    """Loads a graph as `load` does, writes it to `out`, and returns it; `load` then maps the folder into memory.

    The folder must be new or empty.
    """
    with hold_folder(Path(out)):
        prepared.check_place(Path(out))
        graph = load(source, **options)
        if graph.provenance.fingerprint:
            raise InputError(f"{graph.name} is prepared already; copy its folder, or prepare what it was made from")
        prepared.write_prepared(Path(out), graph)
    return graph


def check_prepared(folder: str | Path) -> GraphData:
    """Returns the graph of a prepared folder after reading all of it; raises `InputError` if anything was changed.

    `load` does so by itself where the folder has less than 256 MB.
    """
    path = Path(folder)
    if not (path / CARD).is_file():
        raise InputError(f"{path} is not a prepared folder: it has no {CARD}")
    return prepared.read_prepared(path, is_checked=True)


def _settings(source: Source, options: dict[str, Any]) -> DataSettings:
    known = [field.name for field in fields(DataSettings)]
    for name in options:
        if name not in known:
            raise InputError(f"unknown option {name!r}{did_you_mean(name, known)}; choose from {', '.join(known)}")
    if isinstance(source, DataSettings):
        return replace(source, **options)
    if isinstance(source, str | Path):
        return DataSettings(source=str(source), **options)
    if isinstance(source, GraphData) or is_in_memory(source):
        return DataSettings(**options)
    raise InputError(f"source must be a name, a folder, a GraphData, {FORMS}, got {type(source).__name__}")


def _load_named(entry: NamedSet, settings: DataSettings, fetch: Fetch) -> GraphData:
    _refuse_text(settings, f"the named data set {entry.name!r}")
    graph = entry.read(settings, fetch)
    raw = graph if isinstance(graph, RawGraph) else pyg.raw_from_pyg(graph, settings, name=entry.name)
    class_names = [*(entry.class_names or raw.class_names)]
    notes = [*raw.notes, *entry.notes]
    if settings.features == "given" and entry.channels not in (None, raw.x.size(1)):
        text = (
            f"The features of {entry.name} found here have {plural(raw.x.size(1), 'column')}: they are not the "
            f"published ones ({entry.channels} columns), so figures must not be set beside published ones."
        )
        notes.append(Note("other-features", text))
    raw = replace(raw, class_names=class_names, notes=notes, is_split_chosen=entry.reads_split)
    return GraphData.from_raw(raw, settings)


def _refuse_text(settings: DataSettings, source: str) -> None:
    if settings.text:
        raise InputError(f"text names a column of a node table, and {source} has none; leave text out")


def table_folders() -> list[str]:
    """Returns the names of the folders of tables and prepared folders in the data folder, which `load` takes."""
    folder = data_folder()
    names = sorted(path.name for path in folder.iterdir() if _holds_graph(path)) if folder.is_dir() else []
    return [name for name in names if name not in CATALOG]


def _holds_graph(folder: Path) -> bool:
    return typed_tables.has_types(folder) or any(
        (folder / name).is_file() for name in ("nodes.parquet", "nodes.csv", CARD)
    )


def existing_folder(source: str) -> Path:
    """Returns the folder that a path or a name under `LEGNN_DATA` means; raises `InputError` if there is none."""
    folder, in_data_folder = Path(source).expanduser(), data_folder() / source
    is_name = os.sep not in source and not source.startswith((".", "~"))
    # a folder here that holds no graph may be a run of that name
    if is_name and not _holds_graph(folder) and _holds_graph(in_data_folder):
        return in_data_folder
    if folder.is_dir():
        return folder
    if folder.exists():
        raise InputError(f"{source} is a file; give the folder that holds nodes and edges")
    if not is_name:
        raise InputError(f"there is no folder {source}")
    names = ", ".join(sorted(CATALOG))
    raise InputError(
        f"unknown data set {source!r}{did_you_mean(source, CATALOG)}; choose from {names}, or give a folder of tables"
    )
