"""Similarity of label representations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from legnn.analysis.label_similarity import (
    cosine_similarity,
    most_similar_pairs,
    order_by_similarity,
)

LABELS = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.1], [-1.0, 0.0], [0.1, 1.0]])
NAMES = ["a", 2, "c", "d", "e"]


@given(arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(1, 4)), elements=st.integers(-9, 9)))
def test_it_is_the_cosine_of_every_two_rows(labels):
    found = cosine_similarity(labels)
    for i, one in enumerate(labels):
        for j, other in enumerate(labels):
            lengths = np.linalg.norm(one) * np.linalg.norm(other)
            assert found[i, j] == pytest.approx(one @ other / lengths if lengths else 0.0)


def test_pairs_come_in_descending_order_by_name():
    pairs = most_similar_pairs(cosine_similarity(LABELS), NAMES, count=3)
    assert pairs[["first", "second"]].values.tolist() == [["a", "c"], [2, "e"], ["c", "e"]]
    assert pairs["similarity"].is_monotonic_decreasing
    assert len(most_similar_pairs(cosine_similarity(LABELS), NAMES, count=99)) == 10


def test_similar_classes_stand_side_by_side():
    order = order_by_similarity(cosine_similarity(LABELS)).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(4)) == 1
