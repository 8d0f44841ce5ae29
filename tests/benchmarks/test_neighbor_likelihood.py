"""The likelihood of neighbors' labels that was considered as evidence on a label."""

import numpy as np
import pytest
import torch
from benchmarks.neighbor_likelihood import neighbor_likelihood, weigh
from tests.graphs import small_data

import legnn


def test_neighbors_of_another_class_speak_for_a_class_where_edges_join_unlike_nodes():
    y = torch.arange(40) % 2
    edges = torch.tensor([[i, j] for i in range(40) for j in (i + 1, i + 3) if j < 40]).T
    val = torch.arange(40) >= 36
    masks = {"train_mask": ~val, "val_mask": val, "test_mask": y < 0}
    graph = legnn.load(small_data(40, 2, y=y, edge_index=edges, **masks))
    assert (neighbor_likelihood(graph, 4).argmax(1) == y.numpy()).all()


@pytest.mark.parametrize("split", ["train_mask", "test_mask"])
def test_a_nodes_given_label_has_no_part_in_its_own_likelihood(split):
    data = small_data()
    node = int(data[split].nonzero()[0])
    y = data.y.clone()
    y[node] = (y[node] + 1) % 3
    before, after = (neighbor_likelihood(legnn.load(small_data(y=labels)), 2) for labels in (data.y, y))
    assert np.array_equal(before[node], after[node])
    assert not np.array_equal(before, after)


def test_the_weight_0_leaves_probabilities_as_they_are():
    q = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]])
    assert np.allclose(weigh(q, np.array([[1.0, 2.0, 3.0], [0.0, 5.0, 1.0]]), 0.0), q)
