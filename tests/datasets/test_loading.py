"""`load` takes a name, a folder, settings or a PyG object."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from legnn.config import DataSettings
from legnn.data import statistics
from legnn.datasets import load
from legnn.datasets.digits import nearest
from legnn.errors import InputError


def small_graph(**fields) -> Data:
    """Ten nodes of two classes in a ring."""
    ring = torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10])
    return Data(**{"x": torch.rand(10, 3), "y": torch.arange(10) % 2, "edge_index": ring} | fields)


def test_a_bad_feature_far_down_is_found_and_all_are_counted():
    nodes = 40_000
    x = torch.rand(nodes, 3)
    x[20_007, 1] = x[39_999, 2] = float("nan")
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    graph = small_graph(x=x, y=torch.arange(nodes) % 2, edge_index=ring)
    with pytest.raises(InputError, match=r"2 features of the graph are missing, .* the first at node 20007, column 1"):
        load(graph)


@pytest.mark.parametrize("name", ["Cora", "corra", "cora "])
def test_a_misspelt_name_is_answered_with_the_right_one(name):
    with pytest.raises(InputError, match=r"unknown data set .* \(did you mean 'cora'\?\); choose from actor, .*folder"):
        load(name)


def test_settings_and_options_mean_the_same():
    by_settings = load(DataSettings(source="digits", self_loops=False), split=2)
    by_options = load("digits", self_loops=False, split=2)
    assert torch.equal(by_settings.adjacency.edge_index, by_options.adjacency.edge_index)
    assert torch.equal(by_settings.train_mask, by_options.train_mask)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spilt": 1}, r"unknown option 'spilt' \(did you mean 'split'\?\)"),
        ({"split": -1}, "split must be at least 0 or default"),
        ({"split": True}, "split must be a whole number"),
        ({"undirected": "yes"}, "undirected must be true or false"),
        ({"text_channels": 0}, "text_channels must be"),
        ({"id_column": "label"}, "data.id_column and data.label_column are both 'label'"),
        ({"text": "label"}, "data.label_column and data.text are both 'label'"),
        ({"weight_column": ""}, "weight_column must be the name of a column"),
        ({"text": "words"}, "has none; leave text out"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        load("digits", **options)


def test_an_object_of_another_kind_is_refused():
    with pytest.raises(InputError, match=r"or two frames \(nodes, edges\), got dict"):
        load({})


def test_a_graph_in_memory_is_completed_and_left_as_it_is():
    given = small_graph()
    before = given.clone()
    data = load(given)
    assert given.keys() == before.keys()
    assert all(torch.equal(given[key], before[key]) for key in before.keys())  # noqa: SIM118 (keys is PyG's method)
    assert data.node_id.tolist() == list(range(10))
    assert data.class_names == [0, 1]
    assert data.feature_names is None
    assert data.table_features is None
    assert data.notes[0].code == "split-drawn"
    assert data.provenance.raw_edges == 10
    assert data.num_edges == 30
    assert data.provenance.homophily == 0.0
    assert statistics(data).labeled == 10


def test_the_homophily_counts_edges_with_both_ends_labeled():
    y = torch.tensor([0, 0, 1, 1, 0, 1, 0, 1, 0, -1])
    data = load(small_graph(y=y))
    # of the ring's edges 0-1 and 2-3 join a class, and the two of node 9 do not count
    assert data.provenance.homophily == pytest.approx(2 / 8)


@pytest.mark.parametrize("y", [torch.arange(10).float() % 2, (torch.arange(10) % 2).unsqueeze(1)])
def test_classes_may_be_floats_or_a_column(y):
    assert torch.equal(load(small_graph(y=y)).y, torch.arange(10) % 2)


def test_a_class_that_is_nan_is_unlabeled():
    y = (torch.arange(10) % 2).float()
    y[7] = float("nan")
    assert int(load(small_graph(y=y)).y[7]) == -1


def test_masks_of_several_splits_give_the_column_asked_for():
    masks = {mask: torch.zeros(10, 2, dtype=torch.bool) for mask in ("train_mask", "val_mask", "test_mask")}
    masks["train_mask"][:4] = masks["val_mask"][4:7] = masks["test_mask"][7:] = True
    masks["train_mask"][:, 1], masks["test_mask"][:, 1] = masks["test_mask"][:, 0], masks["train_mask"][:, 0]
    assert load(small_graph(**masks), split=1).train_mask.nonzero().flatten().tolist() == [7, 8, 9]
    with pytest.raises(InputError, match="split 2 of the graph does not exist; choose 0 to 1"):
        load(small_graph(**masks), split=2)


def test_edge_attributes_are_left_aside_with_a_note():
    data = load(small_graph(edge_attr=torch.rand(10, 4)))
    assert data.notes[0].code == "edge-attr-ignored"


HALF = torch.arange(10) < 5
NONE = torch.zeros(10, dtype=torch.bool)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"y": None}, "has no y"),
        ({"edge_index": None}, "has no edge_index"),
        ({"x": [[1.0]] * 10}, "x of the graph is a list; it must be a tensor"),
        ({"x": torch.rand(10)}, r"x of the graph has the shape \[10\]"),
        ({"x": torch.rand(0, 3), "y": torch.zeros(0).long()}, "has no nodes"),
        ({"x": torch.rand(9, 3)}, "9 rows in x and 10 in y"),
        ({"x": torch.full((10, 3), torch.nan)}, "30 features .* the first at node 0, column 0"),
        ({"x": torch.tensor([[1e38, 1e38, torch.inf]] * 10)}, "10 features .* node 0, column 2"),
        ({"y": torch.rand(10)}, "y of the graph holds numbers that are not whole"),
        ({"y": torch.zeros(10, 2)}, r"y of the graph has the shape \[10, 2\]"),
        ({"y": torch.zeros(10).long()}, "every label of the graph is 0"),
        ({"y": torch.full((10,), -1)}, "no node of the graph has a label"),
        ({"y": torch.arange(10) % 2 - 2}, "node 0 of the graph has the class -2"),
        ({"y": torch.arange(10) * 10**12}, "y of the graph goes up to 9000000000000 with 10 nodes"),
        ({"class_names": ["only"]}, "node 1 of the graph has the class 1; classes go from 0 to 0"),
        ({"edge_index": torch.zeros(2, 0).long()}, "has no edges"),
        ({"edge_index": torch.zeros(3, 4).long()}, r"edge_index of the graph has the shape \[3, 4\]"),
        ({"edge_index": torch.tensor([[0, 3], [1, 10]])}, r"the first is edge 1 \(3 to 10\); nodes go from 0 to 9"),
        ({"edge_weight": torch.ones(9)}, r"edge_weight of the graph has the shape \[9\]; it must be \[10\]"),
        ({"edge_weight": torch.zeros(10)}, "the weight of edge 0 of the graph is 0.0"),
        ({"edge_weight": torch.full((10,), torch.inf)}, "the weight of edge 0 of the graph is inf"),
        ({"node_id": ["a"] * 10}, "node id 'a' of the graph is in rows 0 and 1"),
        ({"node_id": ["a"]}, "10 rows in x and 1 in node_id"),
        ({"train_mask": HALF}, "has no val_mask and no test_mask"),
        ({"train_mask": HALF, "val_mask": HALF, "test_mask": NONE}, "node 0 .* both the training and the validation"),
        ({"train_mask": NONE, "val_mask": HALF, "test_mask": ~HALF}, "no node of the graph is for training"),
        ({"train_mask": HALF, "val_mask": NONE, "test_mask": ~HALF}, "mark some 'val', or drop the split column"),
        ({"train_mask": HALF[:5], "val_mask": NONE, "test_mask": NONE}, r"train_mask of the graph has the shape \[5\]"),
    ],
)
def test_a_graph_in_memory_is_checked(fields, message):
    with pytest.raises(InputError, match=message) as error:
        load(small_graph(**fields))
    assert "\n" not in str(error.value)


def test_a_class_without_a_training_node_is_named():
    y = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    train, val, test = torch.arange(10) < 5, torch.arange(10) == 5, torch.arange(10) > 5
    with pytest.raises(InputError, match="test nodes but no training node of class 'c'"):
        load(small_graph(y=y, train_mask=train, val_mask=val, test_mask=test, class_names=["a", "b", "c"]))


def test_a_test_node_without_a_label_is_named():
    y = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, -1])
    train, val, test = torch.arange(10) < 4, (torch.arange(10) > 3) & (torch.arange(10) < 7), torch.arange(10) > 6
    with pytest.raises(InputError, match="1 test node of the graph without a label, the first is 9"):
        load(small_graph(y=y, train_mask=train, val_mask=val, test_mask=test))


def test_digits_are_the_same_graph_for_any_number_of_threads():
    found = set()
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            found.add(load("digits").fingerprint())
    assert len(found) == 1


def test_the_nearest_are_those_of_scikit_learn_but_for_equally_near_ones():
    rows = np.random.default_rng(0).integers(0, 1000, (60, 5)).astype(float)
    expected = NearestNeighbors(n_neighbors=4).fit(rows).kneighbors(return_distance=False)
    np.testing.assert_array_equal(nearest(rows, 4), expected)
    same = np.zeros((4, 2))
    np.testing.assert_array_equal(nearest(same, 2), [[1, 2], [0, 2], [0, 1], [0, 1]])
