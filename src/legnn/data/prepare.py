"""The edges messages travel on: undirected, without duplicates, with self-loops."""

from copy import copy

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import add_remaining_self_loops

from legnn.ops.csr.build import CSR, coo_to_csr
from legnn.ops.runtime.jit import compiled


def prepare(data: Data, *, undirected: bool = True, remove_duplicates: bool = True, self_loops: bool = True) -> Data:
    """A shallow copy of `data` whose edges are prepared; preparing twice changes nothing more.

    Weights of merged edges are averaged, so that a graph keeps the scale of its weights when both directions were
    listed. A self-loop that is there keeps its weight; an added one weighs 1. Merged edges ascend by source, then by
    target, and self-loops that everybody was to have follow the others.

    Args:
        data: on the CPU: `edge_index` [2, E] and, if weighted, `edge_weight` [E].
        undirected: add the reverse of every edge, which merges parallel edges too.
        remove_duplicates: merge parallel edges.
        self_loops: give every node an edge to itself, unless it has one.
    """
    prepared = copy(data)
    edge_index: Tensor = data.edge_index
    weight: Tensor | None = data.get("edge_weight")
    nodes = data.num_nodes
    if undirected or remove_duplicates:
        edge_index, weight = _merged(edge_index, weight, nodes, both_ways=undirected, self_loops=self_loops)
    elif self_loops:
        edge_index, weight = add_remaining_self_loops(edge_index, weight, fill_value=1.0, num_nodes=nodes)
    prepared.edge_index = edge_index.contiguous()
    if weight is not None:
        prepared.edge_weight = weight
    return prepared


def _merged(
    edge_index: Tensor, weight: Tensor | None, nodes: int, *, both_ways: bool, self_loops: bool
) -> tuple[Tensor, Tensor | None]:
    """Each edge once, ascending; with `self_loops`, one for each node after them."""
    source, target = edge_index.numpy()
    rows = coo_to_csr(source, target, None if weight is None else weight.numpy(), nodes, nodes, undirected=both_ways)
    rows = _without_doubles(rows)
    edges = len(rows.col) + (nodes - _count_loops(rows.rowptr, rows.col) if self_loops else 0)
    prepared = np.empty((2, edges), np.int64)
    given = np.empty(0, np.float32) if rows.weight is None else rows.weight
    weights = np.empty(0 if rows.weight is None else edges, given.dtype)
    _list_edges(rows.rowptr, rows.col, given, self_loops, prepared, weights)
    return torch.from_numpy(prepared), None if weight is None else torch.from_numpy(weights)


def _without_doubles(rows: CSR) -> CSR:
    """The same arrays, cut short where doubles were merged."""
    given = np.empty(0, np.float32) if rows.weight is None else rows.weight
    kept = _merge(rows.rowptr, rows.col, given)
    return CSR(rows.rowptr, rows.col[:kept], None if rows.weight is None else rows.weight[:kept])


@compiled
def _merge(rowptr: np.ndarray, col: np.ndarray, weight: np.ndarray) -> int:
    """Merge, in place, entries of a row that have the same column; gives how many are left."""
    weighted = weight.size > 0
    kept, edge = 0, 0
    for row in range(rowptr.size - 1):
        end = rowptr[row + 1]
        while edge < end:
            first = edge
            while edge < end and col[edge] == col[first]:
                edge += 1
            if weighted:
                # in double precision, so that both directions of an edge come to the same in whatever order they add
                total = np.float64(weight[first])
                for other in range(first + 1, edge):
                    total += weight[other]
                weight[kept] = total / (edge - first)
            col[kept] = col[first]
            kept += 1
        rowptr[row + 1] = kept
    return kept


@compiled
def _count_loops(rowptr: np.ndarray, col: np.ndarray) -> int:
    loops = 0
    for row in range(rowptr.size - 1):
        for edge in range(rowptr[row], rowptr[row + 1]):
            loops += col[edge] == row
    return loops


@compiled
def _list_edges(
    rowptr: np.ndarray,
    col: np.ndarray,
    weight: np.ndarray,
    self_loops: bool,
    edge_index: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Write rows out as sources and targets; with `self_loops`, those of all nodes last, of weight 1 where added."""
    weighted = weights.size > 0
    place = 0
    first_loop = edge_index.shape[1] - (rowptr.size - 1)
    for row in range(rowptr.size - 1):
        if self_loops:
            edge_index[0, first_loop + row] = row
            edge_index[1, first_loop + row] = row
            if weighted:
                weights[first_loop + row] = 1
        for edge in range(rowptr[row], rowptr[row + 1]):
            if self_loops and col[edge] == row:
                if weighted:
                    weights[first_loop + row] = weight[edge]
                continue
            edge_index[0, place] = row
            edge_index[1, place] = col[edge]
            if weighted:
                weights[place] = weight[edge]
            place += 1
