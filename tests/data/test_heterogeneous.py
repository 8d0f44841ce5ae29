"""Several node types become one graph, of which only the labeled type is split and predicted."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.typed_graphs import AUTHORS, small_hetero, with_tags
from torch_geometric.data import HeteroData
from torch_geometric.utils import to_undirected

from legnn.config.data import DataSettings
from legnn.data import statistics
from legnn.data.heterogeneous import to_homogeneous
from legnn.datasets import load
from legnn.errors import InputError


def test_nodes_are_laid_out_type_after_type():
    graph = small_hetero()
    data = load(graph)
    assert data.node_types.names == ["author", "paper"]
    assert data.node_type.tolist() == [0] * AUTHORS + [1] * 40
    assert data.node_types.target_mask.tolist() == [False] * AUTHORS + [True] * 40
    assert torch.equal(data.x[AUTHORS:], graph["paper"].x)
    assert torch.equal(data.x[:AUTHORS, :3], graph["author"].x)
    assert not data.x[:AUTHORS, 3:].any(), "columns an author does not have are zero"
    assert data.y.tolist() == [-1] * AUTHORS + graph["paper"].y.tolist()
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert getattr(data, mask).tolist() == [False] * AUTHORS + graph["paper"][mask].tolist()
    assert data.node_id[AUTHORS:].tolist() == list(range(40))
    assert data.notes == []


@given(seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_edges_are_those_of_every_relation_and_their_reverses(seed):
    graph = small_hetero(seed=seed)
    cites = graph["paper", "cites", "paper"].edge_index + AUTHORS
    writes = graph["author", "writes", "paper"].edge_index + torch.tensor([[0], [AUTHORS]])
    expected = to_undirected(torch.cat([cites, writes], 1), num_nodes=AUTHORS + 40)
    assert torch.equal(load(graph, self_loops=False).to_pyg().sort(sort_by_row=True).edge_index, expected)


def test_statistics_are_those_of_the_labeled_type():
    graph = small_hetero()
    found = statistics(load(graph))
    assert found.nodes == AUTHORS + 40
    assert found.train_percent == pytest.approx(100 * int(graph["paper"].train_mask.sum()) / 40)
    y, (source, target) = graph["paper"].y, graph["paper", "cites", "paper"].edge_index
    known = (y[source] >= 0) & (y[target] >= 0)
    assert found.homophily == pytest.approx(float((y[source] == y[target])[known].float().mean()))


def test_a_graph_in_memory_is_left_as_it_is():
    graph = with_tags(small_hetero(author_channels=200))
    before = graph.clone()
    load(graph)
    assert graph.to_dict().keys() == before.to_dict().keys()
    assert torch.equal(graph["author"].x, before["author"].x)


def test_what_load_gave_may_be_loaded_again():
    once = load(with_tags(small_hetero()))
    assert load(once) is once
    twice = load(once.to_pyg())
    assert twice.node_types.names == once.node_types.names
    assert torch.equal(twice.node_type, once.node_type)
    assert twice.provenance.computed_features == ["tag"]


def test_a_wide_type_is_reduced_and_says_so():
    x = torch.rand(AUTHORS, 4) @ torch.rand(4, 200)  # of rank 4: nothing is lost
    graph = small_hetero()
    graph["author"].x = x
    data = load(graph, type_channels=8)
    assert data.x.shape[1] == 8
    mine = data.x[:AUTHORS]
    torch.testing.assert_close(mine @ mine.T, x @ x.T, rtol=1e-3, atol=1e-3)
    assert [*map(str, data.notes)] == ["Features of author were reduced from 200 to 8 by truncated SVD."]
    assert torch.equal(load(graph, type_channels=8).x, data.x)


@pytest.mark.parametrize(("own", "width"), [(300, 300), (512, 512), (513, 40)])
def test_the_labeled_type_keeps_its_features_up_to_512(own, width):
    # reduced to 128, or to as many as there are papers
    assert load(small_hetero(x=torch.rand(40, own))).x.shape[1] == width


def test_one_type_alone_is_an_ordinary_graph():
    graph = HeteroData()
    graph["paper"].x, graph["paper"].y = torch.rand(10, 600), torch.arange(10) % 2
    graph["paper", "cites", "paper"].edge_index = torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10])
    data = load(graph)
    assert data.node_types is None
    assert data.x.shape[1] == 600


def test_weights_of_some_relations_are_one_in_the_others():
    graph = small_hetero()
    graph["author", "writes", "paper"].edge_weight = torch.full((40,), 2.5)
    data = to_homogeneous(graph, DataSettings(), name="small")
    cites = graph["paper", "cites", "paper"].edge_index.size(1)
    assert data.edge_weight.tolist() == [1.0] * cites + [2.5] * 40


def test_several_splits_are_picked_from():
    graph = small_hetero()
    for mask in ("train_mask", "val_mask", "test_mask"):
        graph["paper"][mask] = torch.stack([graph["paper"][mask], graph["paper"][mask].flip(0)], 1)
    graph["paper"].y = torch.arange(40) % 3
    data = load(graph, split=1)
    assert data.train_mask[AUTHORS:].tolist() == graph["paper"].train_mask[:, 1].tolist()


@pytest.mark.parametrize("ids", [np.arange(40) + 500, np.array([f"p{i}" for i in range(40)], dtype=object)])
def test_ids_are_the_users_own_and_may_be_the_same_in_two_types(ids):
    graph = small_hetero(node_id=ids)
    graph["author"].node_id = ids[:AUTHORS]
    data = load(graph)
    assert data.node_id[data.node_types.target_mask.numpy()].tolist() == ids.tolist()


def test_numbers_stay_numbers_beside_types_with_text():
    graph = small_hetero(node_id=torch.arange(40) + 500)
    graph["author"].node_id = [f"a{i}" for i in range(AUTHORS)]
    assert load(graph).node_id[AUTHORS:].tolist() == list(range(500, 540))


def change(graph, kind, field, value):
    graph[kind][field] = value


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda g: change(g, "author", "y", torch.zeros(AUTHORS)), "has y for the types author and paper; keep"),
        (lambda g: g["paper"].pop("y"), "no node type of small has y; give the one that is to be classified"),
        (lambda g: change(g, "author", "x", torch.rand(AUTHORS)), "x of 'author' of small must be a tensor"),
        (
            lambda g: change(g, "author", "x", torch.tensor([[1.0]] * 11 + [[float("nan")]])),
            "1 feature of 'author' of small is missing, not a number or infinite, the first at node 11, column 0",
        ),
        (
            lambda g: change(g, ("author", "writes", "paper"), "edge_index", torch.tensor([[12], [0]])),
            r"1 edge of .*writes.* name a node of type 'author' that does not exist, .* edge 0 \(12\); there are 12",
        ),
        (
            lambda g: change(g, ("author", "writes", "paper"), "edge_index", torch.tensor([[0], [-1]])),
            r"'paper' that does not exist, the first is edge 0 \(-1\); there are 40, numbered from 0",
        ),
        (lambda g: change(g, ("author", "writes", "paper"), "edge_index", None), "must be a tensor"),
        (
            lambda g: change(g, ("author", "writes", "paper"), "edge_weight", torch.ones(3)),
            r"edge_weight of .* has the shape \[3\]; it must be \[40\]",
        ),
        (lambda g: change(g, "paper", "y", torch.zeros(39)), "y of small has 39 rows, and there are 40 nodes"),
        (lambda g: change(g, "paper", "val_mask", torch.ones(5)), "val_mask of small has 5 rows"),
        (lambda g: change(g, "author", "node_id", [1, 2]), "'author' of small has 12 nodes and 2 in node_id"),
        (lambda g: change(g, "paper", "node_id", [0] * 40), "node id 0 of small is in rows 12 and 13"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(damage, message):
    graph = small_hetero()
    damage(graph)
    with pytest.raises(InputError, match=message):
        load(graph)


def test_an_empty_graph_is_refused():
    with pytest.raises(InputError, match="no node type of the graph has y"):
        load(HeteroData())


@pytest.mark.parametrize(("options"), [{"type_channels": 0}, {"missing_features": "spectrall"}])
def test_settings_that_cannot_be_meant_are_refused(options):
    with pytest.raises(InputError, match="must be"):
        load(small_hetero(), **options)


def test_dblp_has_four_types_and_its_split(real_data):
    data = load("dblp")
    assert data.node_types.names == ["author", "paper", "term", "conference"]
    assert torch.bincount(data.node_type).tolist() == [4057, 14328, 7723, 20]
    assert statistics(data)[:6] == ("dblp", 26128, 239566, 334, 4, 4057)
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [400, 400, 3257]
    assert data.provenance.computed_features == ["conference", "paper"]
