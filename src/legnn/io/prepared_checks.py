"""Checks of the arrays of a prepared folder: kernels do not check bounds, and a wrong array would read any memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from legnn.data.validation import ROWS
from legnn.errors import plural
from legnn.io.prepared_card import CARD, PreparedCard, damaged

INDEX = ("int32", "int64")
TYPES = {
    "x": ("float32",),
    "y": ("int64",),
    "split": ("int8",),
    "rowptr": INDEX,
    "col": INDEX,
    "weight": ("float32",),
    "node_id": tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "label_x": ("float32",),
    "label_adjacency": ("float32",),
    "node_type": ("int64",),
}
"""Types that each array may hold."""


def check_layout(path: Path, name: str, array: np.ndarray, card: PreparedCard) -> None:
    """Raises `InputError` unless an array has the type and shape that kernels read in a graph as the card says."""
    if array.dtype.name not in TYPES[name] or not array.dtype.isnative:
        raise damaged(path, f"it holds {array.dtype.str} and must hold {' or '.join(TYPES[name][:4])} of this machine")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise damaged(path, "it must be in order of its rows")
    nodes, edges, classes = card.nodes, card.edges, len(card.class_names)
    shapes: dict[str, tuple[int, ...]] = {
        "x": (nodes, card.features),
        **dict.fromkeys(("y", "split", "node_id", "node_type"), (nodes,)),
        **dict.fromkeys(("col", "weight"), (edges,)),
        "rowptr": (nodes + 1,),
        "label_adjacency": (classes, classes),
        "label_x": (classes, *array.shape[1:2]),
    }
    if array.shape != shapes[name] or array.size == 0:
        raise damaged(path.with_name(CARD), f"{name} has the shape {[*array.shape]} with {plural(nodes, 'node')}")


def check_values(folder: Path, card: PreparedCard, arrays: dict[str, np.ndarray]) -> None:
    """Raises `InputError` for values that are out of their range; finite features are left to `check_finite`."""
    rowptr, y, split = arrays["rowptr"], arrays["y"], arrays["split"]
    if rowptr[0] != 0 or rowptr[-1] != card.edges or (rowptr[1:] < rowptr[:-1]).any():
        raise damaged(folder / "rowptr.npy", f"it must ascend from 0 to {card.edges:,}")
    ranges = {
        "split": ("parts", 0, 3),
        "col": ("nodes", 0, card.nodes - 1),
        "y": ("classes", -1, len(card.class_names) - 1),
        "node_type": ("types", 0, len(card.type_names or [""]) - 1),
    }
    for name, (noun, least, largest) in ranges.items():
        if name in arrays and (arrays[name].min() < least or arrays[name].max() > largest):
            raise damaged(folder / f"{name}.npy", f"it must hold {noun} from {least} to {largest:,}")
    if (y[split > 0] < 0).any():
        raise damaged(folder / "split.npy", "it has nodes without a label")
    # with a NaN among them, both extremes are NaN, which compares false
    if "weight" in arrays and not (arrays["weight"].min() > 0 and arrays["weight"].max() < np.inf):
        raise damaged(folder / "weight.npy", "weights must be finite and above 0")
    if "label_adjacency" in arrays and not (
        arrays["label_adjacency"].min() >= 0 and arrays["label_adjacency"].max() < np.inf
    ):
        raise damaged(folder / "label_adjacency.npy", "weights must be finite and not negative")


def check_finite(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Raises `InputError` for features that are not finite; it reads all of them."""
    for name in ("x", "label_x"):
        array = arrays.get(name, np.zeros((0, 1), np.float32))
        # not one mask: the array may not fit into memory
        if not all(np.isfinite(array[begin : begin + ROWS]).all() for begin in range(0, len(array), ROWS)):
            raise damaged(folder / f"{name}.npy", "features must be finite numbers")
