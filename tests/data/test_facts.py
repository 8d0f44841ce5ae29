"""What the presets read from a graph."""

from dataclasses import replace

import torch
from tests.graphs import small_data

from legnn.config import GraphFacts
from legnn.datasets import load


def labeled(per_class: int, classes: int = 3):
    nodes = 3 * classes * per_class
    data = small_data(nodes=nodes, classes=classes)
    train = torch.arange(nodes) < classes * per_class
    val = ~train & (torch.arange(nodes) < 2 * classes * per_class)
    data.y = torch.arange(nodes) % classes
    data.train_mask, data.val_mask, data.test_mask = train, val, ~train & ~val
    return load(data)


def test_facts_count_training_nodes_and_classes():
    assert labeled(5).facts() == GraphFacts(num_train=15, num_classes=3, counts_features=False, has_label_edges=False)


def test_features_are_counts_if_none_is_negative_and_most_are_zero():
    graph = labeled(5)
    counts = (torch.rand(graph.num_nodes, 50) > 0.9).float()
    assert replace(graph, x=counts).facts().counts_features
    counts[0, 0] = -1
    assert not replace(graph, x=counts).facts().counts_features
    # half of them zero are not most of them
    assert not replace(graph, x=torch.eye(2).repeat(graph.num_nodes, 1)).facts().counts_features


def test_label_edges_are_a_fact():
    assert replace(labeled(5), label_adjacency=torch.eye(3)).facts().has_label_edges
