"""`from_arrays`: a graph from edges, features and labels as arrays, matrices or frames hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from legnn.data.splits import NO_SPLIT, SPLIT_WORDS, to_masks
from legnn.errors import InputError, did_you_mean, plural
from legnn.lazy import is_a, lazy_module
from legnn.lazy import pandas as pd

if TYPE_CHECKING:
    from torch_geometric.data import Data

PYG = "torch_geometric.data"
pyg_data = lazy_module(PYG)


class EdgeArrays(NamedTuple):
    """Edges by the positions of their ends."""

    edge_index: Tensor
    """`[2, E]` int64, sources and targets."""
    weight: Tensor | None = None
    """`[E]` float32."""


class Labels(NamedTuple):
    """Classes by number."""

    y: np.ndarray
    """`[M]` int64, -1 is unlabeled."""
    names: np.ndarray
    """`[C]` the classes, ascending."""


def from_arrays(
    edges: Any, x: Any = None, y: Any = None, *, split: Any = None, node_id: Any = None, name: str = "the graph"
) -> Data:
    """Returns a graph of arrays as a PyG `Data`, which `load`, `train` and `auto` take.

    >>> legnn.train(legnn.from_arrays(adjacency, x, y))  # or legnn.train((adjacency, x, y))

    Args:
        edges: a SciPy matrix `[M, M]`, entry (i, j) the weight of the edge from i to j; an array `[2, E]` or `[E, 2]`;
            or a frame with the columns `source`, `target` and optionally `weight`. Ends are row numbers of `x`, in a
            frame the ids of `node_id`, if it is given.
        x: features `[M, F]`, a SciPy matrix or a frame, too.
        y: classes `[M]` of any type; -1, NaN, None or an empty text is unlabeled. None if no node has a label.
        split: `[M]` of train, val, test, or None or an empty text for nodes in no split; drawn if it is not given.
        node_id: `[M]` the ids of the nodes, whole numbers or text; row numbers if they are not given.
        name: what messages call the graph.
    """
    features = _features(x, name)
    counted = next((values for values in (features, y, node_id) if values is not None), None)
    if counted is None:
        raise InputError(f"{name} has edges alone; give x, a row of features for each node, and y, their classes")
    nodes = len(counted)
    edge_list = edge_arrays(edges, nodes, ids=node_id, name=name)
    fields: dict[str, Any] = {"x": features, "edge_index": edge_list.edge_index, "name": name, "num_nodes": nodes}
    fields |= {"edge_weight": edge_list.weight, "node_id": None if node_id is None else np.asarray(node_id)}
    if is_a(x, "pandas", "DataFrame"):
        fields["feature_names"] = [str(column) for column in x.columns]
    if y is not None:
        labels = number_labels(y)
        _check_length("y", labels.y, nodes, name)
        fields |= {"y": torch.from_numpy(labels.y), "class_names": labels.names.tolist()}
    if split is not None:
        fields |= _masks(split, nodes, name)
    return pyg_data.Data(**{field: value for field, value in fields.items() if value is not None})


def edge_arrays(edges: Any, nodes: int, *, ids: Any = None, name: str = "the graph") -> EdgeArrays:
    """Returns the edges of a SciPy matrix, an array, a frame or a `Data` of `nodes` nodes; see `from_arrays`."""
    if isinstance(edges, EdgeArrays):
        return edges
    if is_a(edges, PYG, "Data"):
        if edges.edge_index is None:
            raise InputError(f"{name} has no edge_index; a Data must have edge_index [2, E]")
        return EdgeArrays(edges.edge_index, edges.get("edge_weight"))
    if is_sparse(edges):
        return _of_matrix(edges, nodes, name)
    if is_a(edges, "pandas", "DataFrame"):
        return _of_frame(edges, nodes, ids, name)
    index = np.asarray(edges)
    if index.ndim != 2 or 2 not in index.shape or index.dtype.kind not in "iuf":
        raise InputError(
            f"the edges of {name} have the shape {list(index.shape)}; they must be numbers of rows, [2, E] or [E, 2], "
            f"or a SciPy matrix [{nodes}, {nodes}]"
        )
    # two edges in two columns could be either: as PyG has it, the first row is the sources
    index = index if len(index) == 2 else index.T
    whole = index.astype(np.int64)
    if not np.array_equal(whole, index):
        raise InputError(f"the edges of {name} hold numbers that are not whole; they must be numbers of rows")
    return EdgeArrays(torch.from_numpy(np.ascontiguousarray(whole)))


def is_sparse(value: object) -> bool:
    """Whether `value` is a sparse matrix or array of SciPy, which is imported if there is one."""
    return is_a(value, "scipy.sparse", "spmatrix", "sparray")


def number_labels(y: Any) -> Labels:
    """Returns classes of any type by number: those there are, ascending; -1 for one that is unlabeled."""
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    # of a list, NumPy would make one type: texts of NaN, for example
    values = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"y has the shape {list(values.shape)}; it must be [M], one class for each node")
    unlabeled = np.asarray(pd.isna(values))
    unlabeled |= values.astype(object) == "" if values.dtype.kind in "OUS" else values == -1
    if values.dtype.kind == "O":
        unlabeled |= np.array([not isinstance(value, str) and value == -1 for value in values], dtype=bool)
    known = values[~unlabeled]
    if known.dtype.kind == "O":
        # numbers among None are numbers again; numbers among texts are texts
        known = known.astype(str) if any(isinstance(value, str) for value in known) else np.array(known.tolist())
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise InputError("y holds infinite numbers; it must hold a class for each node")
    if known.dtype.kind == "f" and np.array_equal(known, np.trunc(known)):
        # NaN among whole numbers has made them floats
        known = known.astype(np.int64)
    names, numbers = np.unique(known, return_inverse=True)
    classes = np.full(len(values), -1, dtype=np.int64)
    classes[~unlabeled] = numbers
    return Labels(classes, names)


def _of_matrix(edges: Any, nodes: int, name: str) -> EdgeArrays:
    if tuple(edges.shape) != (nodes, nodes):
        raise InputError(
            f"the adjacency of {name} has the shape {list(edges.shape)} and x {plural(nodes, 'row')}; "
            f"it must be [{nodes}, {nodes}]"
        )
    entries = edges.tocoo()
    nonzero = entries.data != 0
    weight = entries.data[nonzero].astype(np.float32)
    index = np.stack([entries.row[nonzero], entries.col[nonzero]]).astype(np.int64)
    return EdgeArrays(torch.from_numpy(index), None if (weight == 1).all() else torch.from_numpy(weight))


def _of_frame(edges: pd.DataFrame, nodes: int, ids: Any, name: str) -> EdgeArrays:
    missing = [column for column in ("source", "target") if column not in edges.columns]
    if missing:
        columns = ", ".join(repr(str(column)) for column in edges.columns)
        raise InputError(f"the frame of edges has no column {missing[0]!r}; it has {columns}")
    index = pd.RangeIndex(nodes) if ids is None else pd.Index(np.asarray(ids))
    if not index.is_unique:
        raise InputError(f"the id {index[index.duplicated()][0]!r} of {name} is there twice; ids must differ")
    ends = []
    for column in ("source", "target"):
        position = index.get_indexer(pd.Index(edges[column]))
        if (position < 0).any():
            row = int(np.argmax(position < 0))
            raise InputError(
                f"row {row} (counting from 0) of the frame of edges has the {column} {edges[column].iloc[row]!r}, "
                f"which is no node of {name}; ends are ids of nodes, or row numbers of x where there are no ids"
            )
        ends.append(position)
    weight = None
    if "weight" in edges.columns:
        weight = torch.from_numpy(_numbers(edges["weight"], "weight", name))
    return EdgeArrays(torch.from_numpy(np.stack(ends).astype(np.int64)), weight)


def _numbers(values: Any, field: str, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{field} of {name} does not hold numbers alone; it must") from None


def _features(x: Any, name: str) -> Tensor | None:
    if x is None:
        return None
    if is_sparse(x):
        x = x.toarray()
    features = x if isinstance(x, Tensor) else torch.from_numpy(_numbers(x, "x", name))
    if features.dim() != 2:
        raise InputError(f"x of {name} has the shape {list(features.shape)}; it must be [M, F], a row for each node")
    return features


def _masks(split: Any, nodes: int, name: str) -> dict[str, Tensor]:
    words = ["" if pd.isna(word) else str(word).strip().lower() for word in split]
    _check_length("split", words, nodes, name)
    for row, word in enumerate(words):
        if word and word not in SPLIT_WORDS:
            raise InputError(
                f"the split of node {row} of {name} is {word!r}{did_you_mean(word, SPLIT_WORDS)}; "
                "a split is train, val (or valid, validation), test, or empty"
            )
    return to_masks(torch.tensor([SPLIT_WORDS.get(word, NO_SPLIT) for word in words], dtype=torch.int8))


def _check_length(field: str, values: Any, nodes: int, name: str) -> None:
    if len(values) != nodes:
        raise InputError(f"{field} of {name} has {len(values):,} entries and x {plural(nodes, 'row')}; give one a node")
