"""Compressed sparse rows (CSR) from lists of edges, by sorting one number for each edge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch


class CSR(NamedTuple):
    """Edges by row, ascending by column within a row; parallel edges keep the order in which they were listed."""

    rowptr: np.ndarray
    """`[rows + 1]`, the position of each row's first edge; int32 if the number of edges fits."""
    col: np.ndarray
    """`[edges]`, int32 if the number of columns fits."""
    weight: np.ndarray | None
    """`[edges]`."""


def edges_to_csr(
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None,
    num_nodes: int,
    *,
    undirected: bool,
    remove_duplicates: bool,
    self_loops: bool,
) -> CSR:
    """Returns the rows on which messages are passed: one row for each target, its sources as columns.

    The weight of merged edges is their mean, so that a graph keeps the scale of its weights whether one or both
    directions were listed.

    Args:
        source: int64 `[E]`; `target` likewise, and `weight` `[E]` or None.
        undirected: add the reverse of every edge; of two edges that are each other's, there are then two each way.
        remove_duplicates: merge parallel edges.
        self_loops: give every node exactly one edge to itself: its last one, or one of weight 1 if it has none.
    """
    for index, name in ((target, "row"), (source, "column")):
        if len(index) and (index.min() < 0 or index.max() >= num_nodes):
            raise IndexError(f"a {name} of an edge is outside of 0 to {num_nodes - 1}")
    key = target * num_nodes + source
    if undirected:
        key = np.concatenate([key, source * num_nodes + target])
        weight = None if weight is None else np.concatenate([weight, weight])
    key, weight = _sort(key, weight)
    if remove_duplicates:
        key, weight = _merge_equal(key, weight)
    if self_loops:
        key, weight = _with_self_loops(key, weight, num_nodes)
    return _rows(key, weight, num_nodes, num_nodes)


def coo_to_csr(row: np.ndarray, col: np.ndarray, weight: np.ndarray | None, num_rows: int, num_cols: int) -> CSR:
    """Returns the entries `(row, col, weight)` as CSR; rows and columns outside of the matrix are not detected.

    Shapes: `row` and `col` int64 `[E]`, `weight` `[E]` or None.
    """
    return _rows(*_sort(row * num_cols + col, weight), num_rows, num_cols)


Entries = tuple[np.ndarray, np.ndarray | None]
"""`row * num_cols + col` of each entry, and its weight."""


def _sort(key: np.ndarray, weight: np.ndarray | None) -> Entries:
    if weight is None:
        # many times as fast as to find the order
        return np.sort(key), None
    # NumPy's stable sort takes three times as long
    keys, order = torch.from_numpy(key).sort(stable=True)
    return keys.numpy(), weight[order.numpy()]


def _merge_equal(key: np.ndarray, weight: np.ndarray | None) -> Entries:
    first = np.diff(key, prepend=-1).nonzero()[0]
    if weight is not None and len(first) < len(key):
        # in double precision, so that both directions of an edge get the same mean in any order of addition
        sums = np.add.reduceat(weight, first, dtype=np.float64)
        weight = (sums / np.diff(first, append=len(key))).astype(weight.dtype)
    return key[first], weight


def _with_self_loops(key: np.ndarray, weight: np.ndarray | None, num_nodes: int) -> Entries:
    loops = np.arange(num_nodes) * (num_nodes + 1)
    is_loop = key % (num_nodes + 1) == 0
    others = key[~is_loop]
    position = np.searchsorted(others, loops)
    if weight is not None:
        loop_weight = np.ones(num_nodes, weight.dtype)
        # of several self-loops of a node, the last is assigned last
        loop_weight[key[is_loop] // (num_nodes + 1)] = weight[is_loop]
        weight = np.insert(weight[~is_loop], position, loop_weight)
    return np.insert(others, position, loops), weight


def _rows(key: np.ndarray, weight: np.ndarray | None, num_rows: int, num_cols: int) -> CSR:
    row, col = np.divmod(key, num_cols)
    rowptr = np.zeros(num_rows + 1, _index_type(len(key)))
    np.cumsum(np.bincount(row, minlength=num_rows), out=rowptr[1:])
    return CSR(rowptr, col.astype(_index_type(num_cols), copy=False), weight)


def _index_type(size: int) -> type[np.signedinteger]:
    return np.int32 if size < 2**31 else np.int64
