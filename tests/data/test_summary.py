"""Statistics of graphs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from legnn.data import edge_homophily

NODES = 6
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), min_size=1)


@given(EDGES, st.lists(st.integers(-1, 2), min_size=NODES, max_size=NODES), st.sampled_from([1, 2, 100]))
def test_homophily_is_the_part_of_alike_ends_among_labeled_ones(edges, labels, chunk):
    both = [(labels[s], labels[t]) for s, t in edges if labels[s] >= 0 and labels[t] >= 0]
    expected = sum(a == b for a, b in both) / len(both) if both else float("nan")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("legnn.data.summary.CHUNK", chunk)
        found = edge_homophily(torch.tensor(edges).t(), torch.tensor(labels))
    assert found == expected or (np.isnan(found) and np.isnan(expected))
