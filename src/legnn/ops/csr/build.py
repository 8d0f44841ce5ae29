"""Edges in compressed rows, by counting: two passes over the edges, however many there are, and no keys to sort."""

from typing import NamedTuple

import numpy as np

from legnn.ops.runtime.jit import compiled


class CSR(NamedTuple):
    """Edges by row, ascending by column within a row; edges between the same two stand in the order they came."""

    rowptr: np.ndarray
    """`[rows + 1]`, where each row begins; in 32 bits where the edges fit."""
    col: np.ndarray
    """`[edges]`, in 32 bits where the columns fit."""
    weight: np.ndarray | None
    """`[edges]`."""


def coo_to_csr(
    row: np.ndarray,
    col: np.ndarray,
    weight: np.ndarray | None,
    num_rows: int,
    num_cols: int,
    *,
    both_ways: bool = False,
) -> CSR:
    """Order edges by row, and by column within a row.

    A counting sort by column, then one by row, which keeps the order of the first within each row. Beside the result
    there is never more than the rows (and weights) of the first pass.

    Args:
        row: int64 `[E]`.
        col: int64 `[E]`.
        weight: `[E]`, or None.
        num_rows: above every row.
        num_cols: above every column.
        both_ways: follow the edges by the same edges turned round, as if they had been listed twice.
    """
    _check(row, num_rows, "row")
    _check(col, num_cols, "column")
    ways = [(row, col), (col, row)] if both_ways else [(row, col)]
    given = np.empty(0, np.float32) if weight is None else weight
    by_col = _begins([second for _, second in ways], num_cols)
    by_row = _begins([first for first, _ in ways], num_rows)
    edges = int(by_row[-1])
    rows = np.empty(edges, _index_type(num_rows))
    row_weight = np.empty(0 if weight is None else edges, given.dtype)
    place = by_col[:-1].copy()
    for first, second in ways:
        _fill_columns(first, second, given, place, rows, row_weight)
    cols = np.empty(edges, _index_type(num_cols))
    col_weight = np.empty_like(row_weight)
    _fill_rows(by_col, rows, row_weight, by_row[:-1].copy(), cols, col_weight)
    return CSR(by_row.astype(_index_type(edges), copy=False), cols, None if weight is None else col_weight)


def _check(index: np.ndarray, size: int, what: str) -> None:
    # the passes write wherever an index points
    if len(index) and (index.min() < 0 or index.max() >= size):
        raise IndexError(f"a {what} of an edge is outside of 0 to {size - 1}")


def _index_type(size: int) -> type[np.signedinteger]:
    return np.int32 if size < 2**31 else np.int64


def _begins(indices: list[np.ndarray], size: int) -> np.ndarray:
    """Int64 `[size + 1]`: how many of the indices are below each number."""
    begins = np.zeros(size + 1, np.int64)
    for index in indices:
        _count(index, begins[1:])
    return np.cumsum(begins, out=begins)


@compiled
def _count(index: np.ndarray, count: np.ndarray) -> None:
    for edge in range(index.size):
        count[index[edge]] += 1


@compiled
def _fill_columns(
    row: np.ndarray,
    col: np.ndarray,
    weight: np.ndarray,
    place: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
) -> None:
    weighted = weights.size > 0
    for edge in range(row.size):
        here = place[col[edge]]
        place[col[edge]] = here + 1
        rows[here] = row[edge]
        if weighted:
            weights[here] = weight[edge]


@compiled
def _fill_rows(
    by_col: np.ndarray,
    rows: np.ndarray,
    row_weight: np.ndarray,
    place: np.ndarray,
    cols: np.ndarray,
    col_weight: np.ndarray,
) -> None:
    weighted = col_weight.size > 0
    for col in range(by_col.size - 1):
        for edge in range(by_col[col], by_col[col + 1]):
            here = place[rows[edge]]
            place[rows[edge]] = here + 1
            cols[here] = col
            if weighted:
                col_weight[here] = row_weight[edge]
