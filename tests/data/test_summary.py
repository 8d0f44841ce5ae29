"""Statistics of graphs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_graphs import small_mag
from torch_geometric.utils import homophily

from legnn.data import edge_homophily, statistics
from legnn.data.summary import CHUNK
from legnn.datasets import load

NODES = 6
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), min_size=1)


@given(EDGES, st.lists(st.integers(-1, 2), min_size=NODES, max_size=NODES))
def test_homophily_is_the_part_of_alike_ends_among_labeled_ones(edges, labels):
    both = [(labels[s], labels[t]) for s, t in edges if labels[s] >= 0 and labels[t] >= 0]
    expected = sum(a == b for a, b in both) / len(both) if both else float("nan")
    found = edge_homophily(torch.tensor(edges).t(), torch.tensor(labels))
    assert found == expected or (np.isnan(found) and np.isnan(expected))


def test_homophily_of_more_edges_than_a_chunk_counts_all_of_them():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 100, (2, CHUNK + 1000), generator=generator)
    y = torch.randint(-1, 3, (100,), generator=generator)
    (source, target), labeled = y[edges], (y[edges] >= 0).all(0)
    assert edge_homophily(edges, y) == int((labeled & (source == target)).sum()) / int(labeled.sum())


def test_of_several_types_sizes_are_of_all_and_homophily_and_split_of_the_papers_alone():
    graph = small_mag()
    found = statistics(load(graph, type_channels=2))
    papers = graph.subgraph({"paper": torch.arange(20)}).node_type_subgraph(["paper"])
    cites = papers["paper", "cites", "paper"].edge_index
    assert found.homophily == pytest.approx(homophily(cites, papers["paper"].y, method="edge"))
    assert (found.nodes, found.edges, found.classes, found.labeled) == (36, 160, 2, 20)
    assert (found.train_percent, found.val_percent, found.test_percent) == (20.0, 20.0, 20.0)
