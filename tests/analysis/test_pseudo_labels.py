"""The accuracy of pseudo labels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legnn.analysis.pseudo_labels import (
    BANDS,
    accuracy_by_band,
)
from legnn.errors import InputError


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans())), st.sets(st.floats(0, 1), min_size=2, max_size=6))
def test_a_band_is_open_below_and_closed_above(nodes, edges):
    edges = sorted(edges)
    found = accuracy_by_band([p for p, _ in nodes], [right for _, right in nodes], edges)
    assert found["low"].tolist() == edges[:-1]
    assert found["high"].tolist() == edges[1:]
    for row in found.itertuples():
        own = [right for p, right in nodes if row.low < p <= row.high]
        assert row.nodes == len(own)
        assert math.isnan(row.accuracy) if not own else row.accuracy == pytest.approx(sum(own) / len(own))


def test_the_papers_bands_are_the_default():
    assert BANDS == (0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0)
    found = accuracy_by_band(np.float64([0.9, 0.91, 0.995, 1.0, 0.5]), [True, True, False, True, True])
    assert found["nodes"].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert found["accuracy"].iloc[-1] == 0.5


@pytest.mark.parametrize("edges", [[0.5], [0.5, 0.5], [0.9, 0.8], [[0.1, 0.2]]])
def test_edges_that_do_not_ascend_are_refused(edges):
    with pytest.raises(InputError, match="must be two or more ascending numbers"):
        accuracy_by_band([0.9], [True], edges)
