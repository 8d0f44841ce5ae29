"""`edges_to_csr` in plain NumPy: what the kernels compute, to the bit, by sorting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Entries(NamedTuple):
    """Entries of a matrix. Sorted, they ascend by row, and by column within a row; equal ones keep their order."""

    row: np.ndarray
    """`[E]`."""
    col: np.ndarray
    """`[E]`."""
    weight: np.ndarray | None
    """`[E]`."""


def sort_edges(given: Entries, num_nodes: int, undirected: bool, remove_duplicates: bool, self_loops: bool) -> Entries:
    """Returns the entries of `edges_to_csr` for those `given`, in any order; the rest is described there."""
    row, col, weight = given
    if undirected:
        given = Entries(
            np.concatenate([row, col]), np.concatenate([col, row]), None if weight is None else np.tile(weight, 2)
        )
    found = _sort(given)
    if remove_duplicates:
        found = _merge(found)
    return _with_loops(found, num_nodes) if self_loops else found


def _sort(entries: Entries) -> Entries:
    order = np.lexsort((entries.col, entries.row))
    return _take(entries, order)


def _take(entries: Entries, index: np.ndarray) -> Entries:
    row, col, weight = entries
    return Entries(row[index], col[index], None if weight is None else weight[index])


def _merge(entries: Entries) -> Entries:
    """The first of equal entries, with the mean of their weights."""
    row, col, weight = entries
    is_first = np.ones(len(row), bool)
    is_first[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    if weight is not None:
        group = np.cumsum(is_first) - 1
        # one after the other in double precision, as the kernel adds them
        weight = (np.bincount(group, weight) / np.bincount(group)).astype(weight.dtype)
    return Entries(row[is_first], col[is_first], weight)


def _with_loops(entries: Entries, num_nodes: int) -> Entries:
    is_loop = entries.row == entries.col
    nodes, others = np.arange(num_nodes, dtype=entries.row.dtype), _take(entries, ~is_loop)
    weight = None
    if entries.weight is not None and others.weight is not None:
        own = np.ones(num_nodes, entries.weight.dtype)
        # of several loops of a node, the last is kept
        own[entries.row[is_loop]] = entries.weight[is_loop]
        weight = np.concatenate([others.weight, own])
    return _sort(Entries(np.concatenate([others.row, nodes]), np.concatenate([others.col, nodes]), weight))
