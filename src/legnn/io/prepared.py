"""A prepared folder: a graph that was loaded, checked and prepared once, as plain arrays that are mapped, not read.

| file | what it holds |
|---|---|
| `graph.json` | name, sizes, classes, notes, fingerprint, the settings it was made with, and which arrays there are |
| `x.npy`, `y.npy` | features `[M, F]`, classes `[M]` (-1: unlabeled) |
| `split.npy` | int8 `[M]`: -1 none, 0 training, 1 validation, 2 test |
| `rowptr.npy`, `col.npy` | the edges in compressed rows: row `i` holds the ascending sources of the edges into `i` |
| `weight.npy` | of the edges, in that order, where they have any |
| `node_id.npy` or `node_id.parquet` | ids that are numbers, or text |
| `label_x.npy`, `label_adjacency.npy` | prior knowledge of the labels, where there is any |
| `node_type.npy`, `target_mask.npy` | where there are several node types: that of each node, and who is predicted |
| `text.safetensors` | where features come from a text column: how they were made |
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
from torch import Tensor
from torch_geometric.data import Data

from legnn.config.data import DataSettings
from legnn.data.complete import MASKS, set_or_none
from legnn.data.fingerprint import fingerprint
from legnn.errors import InputError, first_line, plural
from legnn.files import atomic_folder, write_text
from legnn.io.arrays import map_array, write_array
from legnn.io.text_features import TextFeatures
from legnn.ops.csr.build import coo_to_csr

VERSION = 1
CARD, TEXT_IDS, TEXT_FEATURES = "graph.json", "node_id.parquet", "text.safetensors"
NEEDED = ("x", "y", "split", "rowptr", "col")
CARRIED = ("label_x", "label_adjacency", "node_type", "target_mask")
"""Fields of `Data` that are there or not, and are kept as they are."""
ARRAYS = (*NEEDED, "weight", "node_id", *CARRIED)
TYPED = ("type_names", "type_columns", "computed_features", "feature_digest")
"""What `graph.json` says of several node types, and of features that were computed."""


def is_prepared(folder: Path) -> bool:
    """Whether a folder was written by `write_prepared`."""
    return (folder / CARD).is_file()


def check_place(folder: Path) -> None:
    """Refuse a place where a prepared graph would overwrite something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is already there; give another --out, or empty it first")


def write_prepared(folder: Path, data: Data, settings: DataSettings) -> None:
    """Write a graph that `load` returned from anything but a prepared folder, whole or not at all.

    Args:
        folder: new or empty.
        data: with `edge_index`.
        settings: what it was loaded with.
    """
    check_place(folder)
    if data.get("edge_index") is None:
        raise InputError(f"{data.name} is prepared already; copy its folder, or prepare what it was made from")
    # row = target: what a node hears stands together
    source, target = data.edge_index.numpy()
    weight = None if data.get("edge_weight") is None else data.edge_weight.numpy()
    rows = coo_to_csr(target, source, weight, data.num_nodes, data.num_nodes)
    arrays = {"x": data.x.numpy(), "y": data.y.numpy(), "split": _split(data), "rowptr": rows.rowptr, "col": rows.col}
    if rows.weight is not None:
        arrays["weight"] = rows.weight
    arrays |= {name: data[name].numpy() for name in CARRIED if isinstance(data.get(name), Tensor)}
    has_text_ids = data.node_id.dtype.kind not in "iu"
    if not has_text_ids:
        arrays["node_id"] = data.node_id
    card = {
        "version": VERSION,
        "name": data.name,
        "nodes": data.num_nodes,
        "edges": len(rows.col),
        "features": data.x.shape[1],
        "class_names": data.class_names,
        "feature_names": data.get("feature_names"),
        **{name: data[name] for name in TYPED if data.get(name) is not None},
        "notes": data.notes,
        "raw_edges": data.raw_edges,
        "homophily": None if math.isnan(data.homophily) else data.homophily,
        "fingerprint": fingerprint(data),
        "settings": asdict(settings),
        "arrays": {name: {"type": array.dtype.name, "shape": list(array.shape)} for name, array in arrays.items()},
    }
    with atomic_folder(folder) as partial:
        for name, array in arrays.items():
            write_array(partial / f"{name}.npy", array)
        if has_text_ids:
            pq.write_table(pa.table({"id": pa.array(data.node_id.tolist(), pa.string())}), partial / TEXT_IDS)
        if data.get("text_features") is not None:
            data.text_features.save(partial / TEXT_FEATURES)
        write_text(partial / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def read_prepared(folder: Path) -> Data:
    """The graph of a prepared folder, its arrays mapped.

    Returns:
        `Data` as `load` returns it, but with `rowptr` [M + 1] and `col` [E], and `edge_weight` in their order, in place
        of `edge_index`; with `fingerprint` and `prepared_with`, the settings it was made with.

    Raises:
        InputError: where a file is missing, cut short, or not what `graph.json` says.
    """
    card = _read_card(folder)
    try:
        arrays = {name: _open(folder, name, card["arrays"][name]) for name in ARRAYS if name in card["arrays"]}
        needed = {name: torch.from_numpy(arrays.pop(name)) for name in NEEDED}
        split = needed.pop("split")
        data = Data(**needed)
        for part, mask in enumerate(MASKS):
            data[mask] = split == part
        if "weight" in arrays:
            data.edge_weight = torch.from_numpy(arrays.pop("weight"))
        data.node_id = arrays.pop("node_id") if "node_id" in arrays else _read_text_ids(folder)
        for name, array in arrays.items():
            data[name] = torch.from_numpy(array)
        for name in ("name", "class_names", "notes", "raw_edges", "fingerprint"):
            data[name] = card[name]
        data.homophily = math.nan if card["homophily"] is None else card["homophily"]
        data.prepared_with = DataSettings(**card["settings"])
        for name in TYPED:
            if card.get(name) is not None:
                data[name] = card[name]
        set_or_none(data, "feature_names", card["feature_names"])
        text = folder / TEXT_FEATURES
        set_or_none(data, "text_features", TextFeatures.load(text) if text.is_file() else None)
        sizes = {"nodes": card["nodes"], "edges": card["edges"], "features": card["features"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / CARD, f"{type(error).__name__}: {first_line(error)}") from None
    _check(folder, data, split, sizes)
    return data


def check_options(folder: str | Path, wanted: DataSettings, made_with: DataSettings) -> None:
    """Refuse settings that a graph was not prepared with; those left at their defaults ask for nothing."""
    for field in fields(DataSettings):
        value, fixed = getattr(wanted, field.name), getattr(made_with, field.name)
        if field.name != "source" and value not in (field.default, fixed):
            raise InputError(
                f"{field.name} of {folder} is {fixed!r}, as it was prepared, and not {value!r}; leave it out, "
                f"or prepare the graph again"
            )


def check_target(folder: str | Path, data: Data, wanted: str | None) -> None:
    """Refuse a graph of several node types that was prepared to predict another one than `wanted`."""
    if wanted is None or data.get("node_type") is None:
        return
    fixed = data.type_names[int(data.node_type[data.target_mask][0])]
    if fixed != wanted:
        raise InputError(f"{folder} was prepared to predict {fixed!r}, but {wanted!r} is to be predicted")


def check_text(folder: str | Path, data: Data, wanted: TextFeatures) -> None:
    """Refuse a graph whose texts were made features in another way than `wanted`."""
    made = data.get("text_features")
    same = made is not None and made.terms == wanted.terms and np.array_equal(made.components, wanted.components)
    if not (same and np.array_equal(made.idf, wanted.idf)):
        raise InputError(
            f"the features of {folder} were made of other texts than those of the run; give the tables it was made from"
        )


def _split(data: Data) -> np.ndarray:
    part = np.full(data.num_nodes, -1, np.int8)
    for number, mask in enumerate(MASKS):
        part[data[mask].numpy()] = number
    return part


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


def _check(folder: Path, data: Data, split: Tensor, sizes: dict[str, int]) -> None:
    """Refuse arrays that do not fit together: kernels follow their numbers without looking."""
    nodes, edges, features = sizes["nodes"], sizes["edges"], sizes["features"]
    shapes: dict[str, list[int]] = {
        "x": [nodes, features],
        "y": [nodes],
        "rowptr": [nodes + 1],
        "col": [edges],
        "edge_weight": [edges],
        "node_id": [nodes],
        "node_type": [nodes],
        "target_mask": [nodes],
    }
    for name, shape in shapes.items():
        value = data.get(name)
        if value is not None and list(value.shape) != shape:
            raise _damaged(folder / CARD, f"{name} has the shape {list(value.shape)} with {plural(nodes, 'node')}")
    if list(split.shape) != [nodes] or int(split.min()) < -1 or int(split.max()) >= len(MASKS):
        raise _damaged(folder / "split.npy", f"it must hold a number from -1 to 2 for each of {plural(nodes, 'node')}")
    kind = data.get("node_type")
    if kind is not None and (int(kind.min()) < 0 or int(kind.max()) >= len(data.type_names)):
        raise _damaged(folder / "node_type.npy", f"it must hold types from 0 to {len(data.type_names) - 1}")
    rowptr = data.rowptr
    if int(rowptr[0]) != 0 or int(rowptr[-1]) != edges or bool((rowptr[1:] < rowptr[:-1]).any()):
        raise _damaged(folder / "rowptr.npy", f"it must ascend from 0 to {edges:,}")
    if int(data.col.min()) < 0 or int(data.col.max()) >= nodes:
        raise _damaged(folder / "col.npy", f"it must hold nodes from 0 to {nodes - 1:,}")
    if int(data.y.min()) < -1 or int(data.y.max()) >= len(data.class_names):
        raise _damaged(folder / "y.npy", f"it must hold classes from -1 to {len(data.class_names) - 1}")
