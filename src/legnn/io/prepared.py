"""A prepared folder: a `GraphData` as plain arrays, which are mapped into memory.

| file | content |
|---|---|
| `graph.json` | name, sizes, classes, notes, fingerprint, settings, and the arrays |
| `x.npy`, `y.npy` | features `[M, F]`, classes `[M]` (-1: unlabeled) |
| `split.npy` | int8 `[M]`: 0 none, 1 training, 2 validation, 3 test |
| `rowptr.npy`, `col.npy` | the adjacency in CSR: row `i` holds the ascending sources of the edges into `i` |
| `weight.npy` | weights of the edges, in that order, where they have any |
| `node_id.npy` or `node_id.parquet` | ids that are numbers, or text |
| `label_x.npy`, `label_adjacency.npy` | prior knowledge of the labels, where there is any |
| `node_type.npy` | the type of each node, where there are several |
| `columns.safetensors` | `TableFeatures`, where features come from columns of tables |
"""

import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from legnn.config.data import DataSettings
from legnn.data.graph_data import GraphData, Provenance
from legnn.data.node_types import NodeTypes
from legnn.errors import InputError, first_line
from legnn.files import digest_file, naming, refuse_links, remove_partial, write_text
from legnn.io.arrays import map_array, write_array
from legnn.io.prepared_card import (
    ADVICE,
    CARD,
    VERSION,
    PreparedCard,
    check_digests,
    damaged,
    read_card,
    write_card,
)
from legnn.io.prepared_checks import check_finite, check_layout, check_values
from legnn.io.table_features import TableFeatures
from legnn.locks import contents, hold_folder
from legnn.ops.csr.adjacency import Adjacency

TEXT_IDS, TABLE_FEATURES = "node_id.parquet", "columns.safetensors"
UNFINISHED = ".unfinished"
"""In a folder while it is written: one that has it and no `graph.json` is not whole."""
SMALL = 1 << 28
"""The digests of a folder with fewer bytes are checked whenever it is opened."""
OF_GRAPH = ("name", "class_names", "feature_names", "notes", "has_ids")
OF_PROVENANCE = ("raw_edges", "computed_features", "feature_digest")
"""Fields of `GraphData` and `Provenance` that `graph.json` holds as they are."""

REQUIRED = ("x", "y", "split", "rowptr", "col")
OPTIONAL = ("weight", "node_id", "label_x", "label_adjacency", "node_type")


def check_place(folder: Path) -> None:
    """Raises `InputError` if a prepared graph would overwrite something."""
    if folder.exists() and (not folder.is_dir() or contents(folder)):
        if is_unfinished(folder):
            return
        raise InputError(f"{folder} is already there; give another folder, or empty it first")


def is_unfinished(folder: Path) -> bool:
    """Whether a graph is being prepared in a folder, or that was cut short."""
    return (folder / UNFINISHED).is_file() and not (folder / CARD).is_file()


def write_prepared(folder: Path, graph: GraphData) -> None:
    """Writes a graph to a new or empty folder; what is written is removed after an error."""
    with hold_folder(folder, again=True):
        check_place(folder)
        try:
            _remove_unfinished(folder)
            write_text(folder / UNFINISHED, "")
            _write(folder, graph)
        except BaseException:
            _remove_unfinished(folder)
            raise
        (folder / UNFINISHED).unlink()


def _remove_unfinished(folder: Path) -> None:
    if is_unfinished(folder):
        arrays = [f"{name}.npy" for name in (*REQUIRED, *OPTIONAL)]
        for name in (*arrays, TEXT_IDS, TABLE_FEATURES, UNFINISHED):
            (folder / name).unlink(missing_ok=True)
        remove_partial(folder)


def _write(folder: Path, graph: GraphData) -> None:
    provenance, types = graph.provenance, graph.node_types
    tensors = {
        **{name: getattr(graph, name) for name in ("x", "y", "split", "label_x", "label_adjacency", "node_type")},
        **{name: getattr(graph.adjacency, name) for name in ("rowptr", "col", "weight")},
    }
    arrays = {name: tensor.numpy() for name, tensor in tensors.items() if tensor is not None}
    has_text_ids = graph.node_id.dtype.kind not in "iu"
    if not has_text_ids:
        arrays["node_id"] = graph.node_id
    digests = {f"{name}.npy": write_array(folder / f"{name}.npy", array) for name, array in arrays.items()}
    files = []
    if has_text_ids:
        table = pa.table({"id": pa.array(graph.node_id.tolist(), pa.string())})
        with naming(folder / TEXT_IDS):
            pq.write_table(table, folder / TEXT_IDS)
        files.append(TEXT_IDS)
    if graph.table_features is not None:
        graph.table_features.save(folder / TABLE_FEATURES)
        files.append(TABLE_FEATURES)
    card = PreparedCard(
        version=VERSION,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        features=graph.num_features,
        **{name: getattr(graph, name) for name in OF_GRAPH},
        **{name: getattr(provenance, name) for name in OF_PROVENANCE},
        type_names=None if types is None else types.names,
        target_type=None if types is None else types.target,
        type_columns=None if types is None else types.columns,
        homophily=None if math.isnan(provenance.homophily) else provenance.homophily,
        fingerprint=graph.fingerprint(),
        settings=None if provenance.prepared_with is None else asdict(provenance.prepared_with),
        files={**digests, **{name: digest_file(folder / name) for name in files}},
    )
    # last: a folder that has it is whole
    write_card(folder, card)


def read_prepared(folder: Path, *, is_checked: bool = False) -> GraphData:
    """Returns the graph of a prepared folder, its arrays mapped into memory.

    Raises `InputError` if a file is missing, cut short, not as `graph.json` describes it, or holds what a kernel could
    not compute with. That nothing was changed is checked, which reads all, where the folder is small or `is_checked`.
    """
    refuse_links(folder)
    card = read_card(folder)
    names = [name for name in (*REQUIRED, *OPTIONAL) if name in REQUIRED or f"{name}.npy" in card.files]
    arrays = {name: _open(folder, name, card) for name in names}
    check_values(folder, card, arrays)
    node_id = arrays["node_id"] if "node_id" in arrays else _read_text_ids(folder, card.nodes)
    if is_checked or sum(array.nbytes for array in arrays.values()) < SMALL:
        check_finite(folder, arrays)
        check_digests(folder, card)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if name != "node_id"}
    content: dict[str, Any] = {name: getattr(card, name) for name in OF_GRAPH}
    content |= {name: tensors.get(name) for name in ("x", "y", "split", "label_x", "label_adjacency")}
    columns = folder / TABLE_FEATURES
    return GraphData(
        **content,
        adjacency=Adjacency(tensors["rowptr"], tensors["col"], tensors.get("weight"), num_cols=card.nodes),
        node_id=node_id,
        table_features=TableFeatures.load(columns) if columns.is_file() else None,
        node_types=_node_types(card, tensors.get("node_type")),
        provenance=Provenance(
            **{name: getattr(card, name) for name in OF_PROVENANCE},
            homophily=math.nan if card.homophily is None else card.homophily,
            prepared_with=_settings(folder, card),
            fingerprint=card.fingerprint,
        ),
    )


def _node_types(card: PreparedCard, node_type: Tensor | None) -> NodeTypes | None:
    if node_type is None or card.type_names is None or card.target_type is None or card.type_columns is None:
        return None
    return NodeTypes(names=card.type_names, node_type=node_type, target=card.target_type, columns=card.type_columns)


def _settings(folder: Path, card: PreparedCard) -> DataSettings | None:
    try:
        return None if card.settings is None else DataSettings(**card.settings)
    except (TypeError, InputError) as error:
        raise damaged(folder / CARD, first_line(error)) from None


def check_loaded(
    where: str | Path, graph: GraphData, wanted: DataSettings, target: str | None, table_features: TableFeatures | None
) -> None:
    """Raises `InputError` if the graph at `where` was loaded with other settings, or for another target or table.

    Settings with the default value, and a target or table features of None, are not compared.
    """
    used = graph.provenance.prepared_with or wanted
    for field in fields(DataSettings):
        value, fixed = getattr(wanted, field.name), getattr(used, field.name)
        if field.name != "source" and value not in (field.default, fixed):
            raise InputError(
                f"{field.name} of {where} is {fixed!r}, as it was prepared, and not {value!r}; leave it out, "
                f"or prepare the graph again"
            )
    types = graph.node_types
    if target is not None and types is not None and types.target != target:
        raise InputError(f"{where} was prepared to predict {types.target!r}, but {target!r} is to be predicted")
    if table_features is not None:
        check_columns(where, graph, table_features)


def check_columns(where: str | Path, graph: GraphData, fitted: TableFeatures | None) -> None:
    """Raises `InputError` if features of a graph were made of its tables in another way than `fitted` does.

    None stands for features that come from no table: numbers may have been given in both ways.
    """
    features = graph.table_features
    if features is None:
        return
    if not features.is_plain if fitted is None else not fitted.computes_same(features):
        raise InputError(
            f"the features of {where} were made of its tables in another way than those of the run; give its tables"
        )


def _open(folder: Path, name: str, card: PreparedCard) -> np.ndarray:
    path = folder / f"{name}.npy"
    if path.name not in card.files:
        raise damaged(folder / CARD, f"it does not say what {path.name} holds")
    if not path.is_file():
        raise InputError(f"{folder} has no {path.name}; {ADVICE}")
    try:
        array = map_array(path)
    except ValueError as error:
        raise damaged(path, first_line(error)) from None
    except OSError as error:
        raise InputError(f"{path} could not be opened: {first_line(error)}") from None
    check_layout(path, name, array, card)
    return array


def _read_text_ids(folder: Path, nodes: int) -> np.ndarray:
    path = folder / TEXT_IDS
    if not path.is_file():
        raise InputError(f"{folder} has neither node_id.npy nor {TEXT_IDS}; {ADVICE}")
    try:
        column = pq.read_table(path, columns=["id"], partitioning=None)["id"]
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise damaged(path, first_line(error)) from None
    if column.type != pa.string() or column.null_count or len(column) != nodes:
        raise damaged(path, "it must hold a text for each node")
    ids: np.ndarray = column.to_numpy()
    return ids
