"""Graphs as other libraries hold them, in the forms that `load` reads: NetworkX, PyG's data sets, tuples, frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
import torch

from legnn.datasets.arrays import EdgeArrays, edge_arrays, from_arrays, is_sparse
from legnn.errors import InputError, plural
from legnn.lazy import is_a, lazy_module
from legnn.lazy import pandas as pd

if TYPE_CHECKING:
    from torch_geometric.data import Data, Dataset, HeteroData

PYG = "torch_geometric.data"
pyg_data = lazy_module(PYG)

FORMS = "a Data, a HeteroData, a PyG data set, a NetworkX graph, (edges, x, y) or two frames (nodes, edges)"


class NetworkXGraph(Protocol):
    """The part of a graph of NetworkX that is read; the package need not be installed."""

    name: str
    nodes: Any
    edges: Any

    def is_directed(self) -> bool:
        """Whether an edge has a direction."""


def is_networkx(source: object) -> bool:
    """Whether `source` is a graph of NetworkX, which is imported if there is one."""
    return is_a(source, "networkx", "Graph")


def is_frames(source: object) -> TypeGuard[tuple[pd.DataFrame, pd.DataFrame]]:
    """Whether `source` is two frames, of nodes and of edges."""
    return isinstance(source, tuple) and len(source) == 2 and all(is_a(part, "pandas", "DataFrame") for part in source)


def is_in_memory(source: object) -> bool:
    """Whether `source` is an object that holds a graph, or a part of one."""
    is_plain = isinstance(source, tuple | np.ndarray | torch.Tensor) or is_a(source, "pandas", "DataFrame")
    is_graph = is_a(source, PYG, "Data", "HeteroData", "Dataset") or is_networkx(source)
    return is_plain or is_graph or is_sparse(source)


def to_pyg(source: Any) -> Data | HeteroData | None:
    """Returns a graph in memory as PyG has it; None where `source` is a name, a folder or settings.

    Raises `InputError` for an object that lacks something, with what would be right.
    """
    if not is_in_memory(source):
        return None
    if is_a(source, PYG, "Data", "HeteroData"):
        return source
    if is_a(source, PYG, "Dataset"):
        return _of_dataset(source)
    if is_networkx(source):
        return _of_networkx(source)
    if isinstance(source, tuple):
        if len(source) not in (2, 3):
            raise InputError(f"a tuple of {len(source)} is no graph; give (edges, x, y), or two frames (nodes, edges)")
        return from_arrays(*source)
    raise InputError(
        f"a {type(source).__name__} alone is no graph with features and labels; give (edges, x, y), or two frames "
        "(nodes, edges)"
    )


def edges_among(graph: Any, rows: int) -> EdgeArrays:
    """Returns the edges of a graph whose nodes are `rows` rows of a table: an array, a matrix, NetworkX or `Data`.

    The nodes of NetworkX are the rows in their order, or row numbers where they are whole numbers below `rows`.
    """
    if not is_networkx(graph):
        return edge_arrays(graph, rows)
    nodes = list(graph.nodes)
    if all(isinstance(node, int) and 0 <= node < rows for node in nodes):
        return _networkx_edges(graph, {node: node for node in nodes})
    if len(nodes) != rows:
        raise InputError(
            f"the graph has {plural(len(nodes), 'node')} and the table {plural(rows, 'row')}; give a node for each "
            "row, or number the nodes by rows"
        )
    return _networkx_edges(graph, {node: row for row, node in enumerate(nodes)})


def _of_dataset(source: Dataset) -> Data | HeteroData:
    if len(source) != 1:
        raise InputError(
            f"the data set holds {plural(len(source), 'graph')}, and one graph is trained on; give one of them, "
            "such as dataset[0]"
        )
    graph: Data | HeteroData = source[0]
    name = getattr(source, "name", None)
    if isinstance(name, str) and graph.get("name") is None:
        graph = graph.clone() if is_a(graph, PYG, "HeteroData") else pyg_data.Data(**graph.to_dict())
        graph.name = name
    return graph


def _of_networkx(source: NetworkXGraph) -> Data:
    name = source.name or "the graph"
    nodes = list(source.nodes)
    if not nodes:
        raise InputError(f"{name} has no nodes; a graph needs some")
    edges = _networkx_edges(source, {node: row for row, node in enumerate(nodes)})
    columns = {
        key: [node_attributes.get(key) for _, node_attributes in source.nodes(data=True)]
        for key in ("x", "label", "y", "split")
    }
    attributes = {key: values for key, values in columns.items() if any(value is not None for value in values)}
    x = _node_vectors(attributes["x"], nodes, name) if "x" in attributes else None
    is_numbered = all(isinstance(node, int) and not isinstance(node, bool) for node in nodes)
    return from_arrays(
        edges,
        x,
        attributes.get("label", attributes.get("y")),
        split=attributes.get("split"),
        node_id=nodes if is_numbered else np.array([str(node) for node in nodes], dtype=object),
        name=name,
    )


def _networkx_edges(source: NetworkXGraph, row_of: Mapping[Any, int]) -> EdgeArrays:
    ends = [(row_of[u], row_of[v], attributes.get("weight", 1)) for u, v, attributes in source.edges(data=True)]
    if not source.is_directed():
        # an edge without a direction is one in each; a self-loop is one
        ends += [(target, origin, weight) for origin, target, weight in ends if origin != target]
    index = torch.tensor([edge[:2] for edge in ends], dtype=torch.long).reshape(-1, 2).T.contiguous()
    weight = torch.tensor([float(edge[2]) for edge in ends])
    return EdgeArrays(index, None if bool((weight == 1).all()) else weight)


def _node_vectors(values: list[Any], nodes: list[Any], name: str) -> np.ndarray:
    """`[M, F]` from the attribute x of each node, a vector or a number."""
    missing = [node for node, value in zip(nodes, values, strict=True) if value is None]
    if missing:
        raise InputError(
            f"{plural(len(missing), 'node')} of {name} without the attribute x, the first is {missing[0]!r}; "
            "give every node its features, or none"
        )
    try:
        rows = [np.atleast_1d(np.asarray(value, dtype=np.float32)) for value in values]
    except (TypeError, ValueError):
        raise InputError(f"x of {name} does not hold numbers alone; it must be a vector of them") from None
    for node, row in zip(nodes, rows, strict=True):
        if row.shape != rows[0].shape or row.ndim != 1:
            raise InputError(
                f"x of node {node!r} of {name} has the shape {list(row.shape)}, and that of the first node "
                f"{list(rows[0].shape)}; they must be vectors of one length"
            )
    return np.stack(rows)
