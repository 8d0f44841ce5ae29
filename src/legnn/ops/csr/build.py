"""Compressed sparse rows (CSR) from lists of edges, by counting sort: no keys, and no comparison of edges."""

# mypy: disable-error-code="no-untyped-def"
from typing import NamedTuple

import numpy as np

from legnn.ops.runtime.jit import compiled


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
    csr = coo_to_csr(target, source, weight, num_nodes, num_nodes, undirected=undirected)
    if remove_duplicates:
        csr = _merge_duplicates(csr)
    return _with_self_loops(csr) if self_loops else csr


def coo_to_csr(
    row: np.ndarray, col: np.ndarray, weight: np.ndarray | None, num_rows: int, num_cols: int, undirected: bool = False
) -> CSR:
    """Returns the entries `(row, col, weight)` as CSR; raises `IndexError` for a row or column outside of the matrix.

    A counting sort by column, then one by row, which keeps the order of the first within each row. Besides the result,
    memory holds the rows and weights of the first pass only. With `undirected`, every entry `(col, row, weight)` is
    appended after all of the given ones.

    Shapes: `row` and `col` int64 `[E]`, `weight` `[E]` or None.
    """
    _check(row, num_rows, "row")
    _check(col, num_cols, "column")
    directions = [(row, col), (col, row)] if undirected else [(row, col)]
    by_col = _first_positions([cols for _, cols in directions], num_cols)
    by_row = _first_positions([rows for rows, _ in directions], num_rows)
    edges = int(by_row[-1])
    given = _or_empty(weight)
    rows = np.empty(edges, _index_type(num_rows))
    row_weight = np.empty(0 if weight is None else edges, given.dtype)
    position = by_col[:-1].copy()
    for from_row, from_col in directions:
        _sort_by_column(from_row, from_col, given, position, rows, row_weight)
    cols = np.empty(edges, _index_type(num_cols))
    col_weight = np.empty_like(row_weight)
    _sort_by_row(by_col, rows, row_weight, by_row[:-1].copy(), cols, col_weight)
    return CSR(by_row.astype(_index_type(edges), copy=False), cols, None if weight is None else col_weight)


def _merge_duplicates(csr: CSR) -> CSR:
    kept = _merge_in_place(csr.rowptr, csr.col, _or_empty(csr.weight))
    if kept == len(csr.col):
        return csr
    # copies, or the memory of the removed edges would stay in use
    weight = None if csr.weight is None else csr.weight[:kept].copy()
    return CSR(csr.rowptr.astype(_index_type(kept), copy=False), csr.col[:kept].copy(), weight)


def _with_self_loops(csr: CSR) -> CSR:
    edges = len(csr.col) - _count_loops(csr.rowptr, csr.col) + len(csr.rowptr) - 1
    rowptr = np.empty(len(csr.rowptr), _index_type(edges))
    col = np.empty(edges, csr.col.dtype)
    given = _or_empty(csr.weight)
    weight = np.empty(0 if csr.weight is None else edges, given.dtype)
    _copy_with_loops(csr.rowptr, csr.col, given, rowptr, col, weight)
    return CSR(rowptr, col, None if csr.weight is None else weight)


def _check(index: np.ndarray, size: int, what: str) -> None:
    # compiled code does not check bounds: it would write outside of the arrays
    if len(index) and (index.min() < 0 or index.max() >= size):
        raise IndexError(f"a {what} of an edge is outside of 0 to {size - 1}")


def _index_type(size: int) -> type[np.signedinteger]:
    return np.int32 if size < 2**31 else np.int64


def _or_empty(weight: np.ndarray | None) -> np.ndarray:
    """An array also without weights: numba would compile every kernel once more for None."""
    return np.empty(0, np.float32) if weight is None else weight


def _first_positions(indices: list[np.ndarray], size: int) -> np.ndarray:
    """Return, for each of `size + 1` numbers, how many of the indices are below it (int64)."""
    first = np.zeros(size + 1, np.int64)
    for index in indices:
        _count(index, first[1:])
    return np.cumsum(first, out=first)


@compiled
def _count(index, count):
    for edge in range(index.size):
        count[index[edge]] += 1


@compiled
def _sort_by_column(row, col, weight, position, rows, weights):
    weighted = weights.size > 0
    for edge in range(row.size):
        to = position[col[edge]]
        position[col[edge]] = to + 1
        rows[to] = row[edge]
        if weighted:
            weights[to] = weight[edge]


@compiled
def _sort_by_row(by_col, rows, row_weight, position, cols, col_weight):
    weighted = col_weight.size > 0
    for col in range(by_col.size - 1):
        for edge in range(by_col[col], by_col[col + 1]):
            to = position[rows[edge]]
            position[rows[edge]] = to + 1
            cols[to] = col
            if weighted:
                col_weight[to] = row_weight[edge]


@compiled
def _merge_in_place(rowptr, col, weight):
    """Merges entries of a row that have the same column; returns the number of entries left."""
    weighted = weight.size > 0
    kept, edge = 0, 0
    for row in range(rowptr.size - 1):
        end = rowptr[row + 1]
        while edge < end:
            first = edge
            while edge < end and col[edge] == col[first]:
                edge += 1
            if weighted:
                # in double precision, so that both directions of an edge get the same mean in any order of addition
                total = np.float64(weight[first])
                for other in range(first + 1, edge):
                    total += weight[other]
                weight[kept] = total / (edge - first)
            col[kept] = col[first]
            kept += 1
        rowptr[row + 1] = kept
    return kept


@compiled
def _count_loops(rowptr, col):
    loops = 0
    for row in range(rowptr.size - 1):
        for edge in range(rowptr[row], rowptr[row + 1]):
            loops += col[edge] == row
    return loops


@compiled
def _copy_with_loops(rowptr, col, weight, new_rowptr, new_col, new_weight):
    """Copies the rows, each with one self-loop between the lower and the higher columns."""
    weighted = new_weight.size > 0
    to = 0
    new_rowptr[0] = 0
    for row in range(rowptr.size - 1):
        edge, end = rowptr[row], rowptr[row + 1]
        while edge < end and col[edge] < row:
            new_col[to] = col[edge]
            if weighted:
                new_weight[to] = weight[edge]
            edge += 1
            to += 1
        new_col[to] = row
        if weighted:
            new_weight[to] = 1
        while edge < end and col[edge] == row:
            if weighted:
                new_weight[to] = weight[edge]
            edge += 1
        to += 1
        while edge < end:
            new_col[to] = col[edge]
            if weighted:
                new_weight[to] = weight[edge]
            edge += 1
            to += 1
        new_rowptr[row + 1] = to
