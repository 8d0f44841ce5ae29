"""Sums of rows in registers are those in memory."""

import numpy as np
import pytest

from legnn.ops.runtime.row_sums import BLOCK, SMALL_BLOCK, add_rows

SIZES = [1, SMALL_BLOCK - 1, SMALL_BLOCK, BLOCK, BLOCK + 1, 2 * BLOCK + SMALL_BLOCK + 3]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("columns", SIZES)
def test_rows_are_added_to_the_columns_given_and_to_no_others(columns, kind):
    generator = np.random.default_rng(0)
    begin = 3
    values = generator.standard_normal((9, columns + 5)).astype(np.float32)
    rows, factors = generator.integers(0, 9, 20).astype(kind), generator.standard_normal((6, 2)).astype(np.float32)
    total = generator.standard_normal(columns + 5).astype(np.float32)
    expected = total.astype(np.float64)
    expected[begin : begin + columns] += factors[:, 1].astype(np.float64) @ values[rows[7:13], begin : begin + columns]
    add_rows(total, begin, begin + columns, values, rows, 7, 13, factors, 1)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-5)


def test_no_rows_leave_the_sum_as_it_is():
    total, empty = np.ones(BLOCK, np.float32), np.empty(0, np.int32)
    add_rows(total, 0, BLOCK, np.ones((1, BLOCK), np.float32), empty, 0, 0, np.ones((1, 1), np.float32), 0)
    assert (total == 1).all()
