"""A prepared folder: a `GraphData` as plain arrays, which are mapped into memory.

| file | content |
|---|---|
| `graph.json` | name, sizes, classes, notes, fingerprint, settings, and the arrays |
| `x.npy`, `y.npy` | features `[M, F]`, classes `[M]` (-1: unlabeled) |
| `split.npy` | int8 `[M]`: -1 none, 0 training, 1 validation, 2 test |
| `rowptr.npy`, `col.npy` | the adjacency in CSR: row `i` holds the ascending sources of the edges into `i` |
| `weight.npy` | weights of the edges, in that order, where they have any |
| `node_id.npy` or `node_id.parquet` | ids that are numbers, or text |
| `label_x.npy`, `label_adjacency.npy` | prior knowledge of the labels, where there is any |
| `node_type.npy` | the type of each node, where there are several |
| `text.safetensors` | `TextFeatures`, where features come from a text column |
"""

import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from legnn.config.data import DataSettings
from legnn.data.graph_data import GraphData, Provenance
from legnn.data.node_types import NodeTypes
from legnn.data.splits import MASKS
from legnn.errors import InputError, first_line, plural
from legnn.files import atomic_folder, write_text
from legnn.io.arrays import map_array, write_array
from legnn.io.text_features import TextFeatures
from legnn.ops.csr.adjacency import Adjacency

VERSION = 2
CARD, TEXT_IDS, TEXT_FEATURES = "graph.json", "node_id.parquet", "text.safetensors"
OF_GRAPH = ("name", "class_names", "feature_names", "notes")
OF_PROVENANCE = ("raw_edges", "computed_features", "feature_digest")
"""Fields of `GraphData` and `Provenance` that `graph.json` holds as they are."""

REQUIRED = ("x", "y", "split", "rowptr", "col")
OPTIONAL = ("weight", "node_id", "label_x", "label_adjacency", "node_type")


def check_place(folder: Path) -> None:
    """Raises `InputError` if a prepared graph would overwrite something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is already there; give another folder, or empty it first")


def write_prepared(folder: Path, graph: GraphData) -> None:
    """Writes a graph to a new or empty folder, atomically."""
    check_place(folder)
    provenance, types = graph.provenance, graph.node_types
    if provenance.fingerprint:
        raise InputError(f"{graph.name} is prepared already; copy its folder, or prepare what it was made from")
    tensors = {
        **{name: getattr(graph, name) for name in ("x", "y", "label_x", "label_adjacency", "node_type")},
        **{name: getattr(graph.adjacency, name) for name in ("rowptr", "col", "weight")},
    }
    arrays = {name: tensor.numpy() for name, tensor in tensors.items() if tensor is not None}
    arrays["split"] = np.full(graph.num_nodes, -1, np.int8)
    for part, mask in enumerate(MASKS):
        arrays["split"][getattr(graph, mask).numpy()] = part
    has_text_ids = graph.node_id.dtype.kind not in "iu"
    if not has_text_ids:
        arrays["node_id"] = graph.node_id
    card = {
        "version": VERSION,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        **{name: getattr(graph, name) for name in OF_GRAPH},
        **{name: getattr(provenance, name) for name in OF_PROVENANCE},
        "type_names": types and types.names,
        "target_type": types and types.target,
        "type_columns": types and types.columns,
        "homophily": None if math.isnan(provenance.homophily) else provenance.homophily,
        "fingerprint": graph.fingerprint(),
        "settings": provenance.prepared_with and asdict(provenance.prepared_with),
        "arrays": {name: {"type": array.dtype.name, "shape": list(array.shape)} for name, array in arrays.items()},
    }
    with atomic_folder(folder) as partial:
        for name, array in arrays.items():
            write_array(partial / f"{name}.npy", array)
        if has_text_ids:
            pq.write_table(pa.table({"id": pa.array(graph.node_id.tolist(), pa.string())}), partial / TEXT_IDS)
        if graph.text_features is not None:
            graph.text_features.save(partial / TEXT_FEATURES)
        write_text(partial / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def read_prepared(folder: Path) -> GraphData:
    """Returns the graph of a prepared folder, its arrays mapped into memory.

    Raises `InputError` if a file is missing, cut short, or not as `graph.json` describes it.
    """
    card = _read_card(folder)
    try:
        there = [name for name in (*REQUIRED, *OPTIONAL) if name in REQUIRED or name in card["arrays"]]
        arrays = {name: _open(folder, name, card["arrays"][name]) for name in there}
        node_id = arrays.pop("node_id") if "node_id" in arrays else _read_text_ids(folder)
        _check(folder, card, {**arrays, "node_id": node_id})
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        content = {name: card[name] for name in OF_GRAPH}
        content |= {name: tensors.get(name) for name in ("x", "y", "label_x", "label_adjacency")}
        content |= {mask: tensors["split"] == part for part, mask in enumerate(MASKS)}
        types = {"names": card["type_names"], "target": card["target_type"], "columns": card["type_columns"]}
        node_type, text = tensors.get("node_type"), folder / TEXT_FEATURES
        return GraphData(
            **content,
            adjacency=Adjacency(tensors["rowptr"], tensors["col"], tensors.get("weight"), num_cols=card["nodes"]),
            node_id=node_id,
            text_features=TextFeatures.load(text) if text.is_file() else None,
            node_types=None if node_type is None else NodeTypes(node_type=node_type, **types),
            provenance=Provenance(
                **{name: card[name] for name in OF_PROVENANCE},
                homophily=math.nan if card["homophily"] is None else card["homophily"],
                prepared_with=card["settings"] and DataSettings(**card["settings"]),
                fingerprint=card["fingerprint"],
            ),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / CARD, f"{type(error).__name__}: {first_line(error)}") from None


def check_loaded(
    where: str | Path, graph: GraphData, wanted: DataSettings, target: str | None, text_features: TextFeatures | None
) -> None:
    """Raises `InputError` if the graph at `where` was loaded with other settings, or for another target or text.

    Settings with the default value, and a target or text features of None, are not compared.
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
    if text_features is not None and graph.text_features != text_features:
        raise InputError(
            f"the features of {where} were computed from other texts than those of the run; give its tables"
        )


def _damaged(path: Path, how: str) -> InputError:
    return InputError(f"{path} is damaged ({how}); restore it from a copy, or prepare the graph again")


def _read_card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, first_line(error)) from None
    version = card.get("version") if isinstance(card, dict) else None
    if version != VERSION:
        raise InputError(
            f"{path} is of version {version!r} and this legnn reads version {VERSION}; prepare the graph again"
        )
    return dict(card)


def _open(folder: Path, name: str, kind: dict[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    if not path.is_file():
        raise InputError(f"{folder} has no {path.name}; restore it from a copy, or prepare the graph again")
    try:
        array = map_array(path)
    except ValueError as error:
        raise _damaged(path, first_line(error)) from None
    except OSError as error:
        raise InputError(f"{path} could not be opened: {first_line(error)}") from None
    if array.dtype.name != kind["type"] or list(array.shape) != kind["shape"]:
        found = f"{array.dtype.name} {list(array.shape)}"
        raise _damaged(path, f"it holds {found} and {CARD} says {kind['type']} {kind['shape']}")
    return array


def _read_text_ids(folder: Path) -> np.ndarray:
    path = folder / TEXT_IDS
    if not path.is_file():
        raise InputError(f"{folder} has neither node_id.npy nor {TEXT_IDS}; restore it, or prepare the graph again")
    try:
        ids: np.ndarray = pq.read_table(path, columns=["id"], partitioning=None)["id"].to_numpy()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, first_line(error)) from None
    return ids


def _check(folder: Path, card: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raises `InputError` for arrays that do not fit together: kernels do not check bounds."""
    nodes, edges, classes = card["nodes"], card["edges"], len(card["class_names"])
    shapes = {
        "x": (nodes, card["features"]),
        **dict.fromkeys(("y", "split", "node_id", "node_type"), (nodes,)),
        **dict.fromkeys(("col", "weight"), (edges,)),
        "rowptr": (nodes + 1,),
    }
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            found = list(arrays[name].shape)
            raise _damaged(folder / CARD, f"{name} has the shape {found} with {plural(nodes, 'node')}")
    rowptr = arrays["rowptr"]
    if rowptr[0] != 0 or rowptr[-1] != edges or (rowptr[1:] < rowptr[:-1]).any():
        raise _damaged(folder / "rowptr.npy", f"it must ascend from 0 to {edges:,}")
    ranges = {"split": ("parts", -1, 2), "col": ("nodes", 0, nodes - 1), "y": ("classes", -1, classes - 1)}
    if "node_type" in arrays:
        ranges["node_type"] = ("types", 0, len(card["type_names"]) - 1)
    for name, (what, least, largest) in ranges.items():
        if arrays[name].min() < least or arrays[name].max() > largest:
            raise _damaged(folder / f"{name}.npy", f"it must hold {what} from {least} to {largest:,}")
