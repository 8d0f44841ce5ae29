"""Accuracy by what is known of a node."""

import numpy as np
import torch
from torch_geometric.data import Data

from legnn.data import GraphData
from legnn.report import bands


def path_graph():
    """0 – 1 – 2 – 3 and 4 alone; 0 shows its label."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    masks = {name: torch.zeros(5, dtype=torch.bool) for name in ("train_mask", "val_mask", "test_mask")}
    masks["train_mask"][0] = masks["val_mask"][1] = True
    masks["test_mask"][2:] = True
    y = torch.tensor([0, 0, 1, 1, 1])
    return GraphData.from_pyg(Data(x=torch.eye(5), y=y, edge_index=edges, **masks), training=False)


def test_distance_is_in_hops_to_the_nearest_shown_label():
    assert bands.distance_to_shown(path_graph()).tolist()[1:] == [1, 2, 3, -1]


def test_degree_counts_other_nodes():
    assert bands.degrees(path_graph()).tolist() == [1, 2, 2, 1, 0]


def test_homophily_is_of_neighbors_of_known_class():
    np.testing.assert_allclose(bands.neighbor_homophily(path_graph()), [1, 0.5, 0.5, 1, np.nan])


def test_every_node_is_in_one_band_and_accuracies_add_up():
    draw = np.random.default_rng(0)
    confidence, correct = draw.random(500), draw.random(500) < 0.7
    degree = draw.integers(0, 70, 500)
    homophily = np.where(draw.random(500) < 0.1, np.nan, draw.random(500))
    found = [
        bands.by_confidence(confidence, correct),
        bands.by_degree(degree, confidence, correct),
        bands.by_homophily(homophily, confidence, correct),
        bands.by_distance(draw.integers(-1, 9, 500), confidence, correct),
    ]
    for some in found:
        assert sum(band.nodes for band in some) == 500
        assert sum(band.nodes * band.accuracy for band in some if band.nodes) == np.float64(correct.sum())


def test_bands_of_degrees_double():
    degree = np.array([0, 1, 2, 3, 4, 5, 8, 9])
    found = bands.by_degree(degree, np.ones(8), np.ones(8, dtype=bool))
    assert [(band.name, band.nodes) for band in found] == [
        ("0", 1), ("1", 1), ("2", 1), ("3 to 4", 2), ("5 to 8", 2), ("9 to 16", 1),
    ]  # fmt: skip
