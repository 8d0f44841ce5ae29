"""Statistics of graphs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_graphs import small_mag
from torch_geometric.data import Data
from torch_geometric.utils import homophily

from legnn.data import edge_homophily, statistics, train_homophily
from legnn.datasets import load

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


def test_of_several_types_sizes_are_of_all_and_homophily_and_split_of_the_papers_alone():
    graph = small_mag()
    found = statistics(load(graph, type_channels=2))
    papers = graph.subgraph({"paper": torch.arange(20)}).node_type_subgraph(["paper"])
    cites = papers["paper", "cites", "paper"].edge_index
    assert found.homophily == pytest.approx(homophily(cites, papers["paper"].y, method="edge"))
    assert (found.nodes, found.edges, found.classes, found.labeled) == (36, 160, 2, 20)
    assert (found.train_percent, found.val_percent, found.test_percent) == (20.0, 20.0, 20.0)


def test_homophily_among_training_labels_knows_neither_other_labels_nor_self_loops(monkeypatch):
    monkeypatch.setattr("legnn.data.summary.LEAST_EDGES", 1)
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 0]])
    y = torch.tensor([0, 0, 1, 1, 1])
    masks = {f"{name}_mask": torch.zeros(5, dtype=torch.bool) for name in ("train", "val", "test")}
    masks["train_mask"][[0, 1, 2]] = True
    masks["val_mask"][3] = masks["test_mask"][4] = True
    graph = load(Data(x=torch.eye(5), edge_index=edges, y=y, **masks))
    assert train_homophily(graph.adjacency, graph.train_mask, graph.y) == 0.5
    alone = torch.tensor([True, False, False, False, False])
    assert train_homophily(graph.adjacency, alone, graph.y) is None
