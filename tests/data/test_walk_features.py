"""`features=metapath2vec`: features of all node types from random walks alone, in the place of those of the data."""

import pytest
import torch
from tests.graphs import small_data
from tests.typed_graphs import CHAIN, small_hetero, typed_edges, with_tags

from legnn.data import embedding
from legnn.data.metapath import meta_path, metapath2vec, round_trips
from legnn.data.node_types import TypedEdges
from legnn.datasets import load
from legnn.errors import InputError

WALKS = {"features": "metapath2vec", "type_channels": 6}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "legnn" / "embeddings"


def test_features_of_every_type_are_those_of_walks_from_the_labeled_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    graph = with_tags(small_hetero(author_channels=20))
    data = load(graph, **WALKS)
    relations = {(s, "to", t): graph[s, name, t].edge_index for s, name, t in graph.edge_types}
    edges = TypedEdges({"author": 12, "paper": 40, "tag": 6}, relations)
    walks = round_trips(edges, ["author", "paper", "tag"], "paper")
    torch.testing.assert_close(data.x, metapath2vec(edges, walks, 6, seed=0))
    assert data.provenance.computed_features == ["author", "paper", "tag"]
    assert data.node_types.columns == [[*"012345"]] * 3
    assert "computed from the graph alone (`features=metapath2vec`)" in data.notes[-1]


def test_the_order_of_the_nodes_does_not_matter(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    plain = load(with_tags(small_hetero()), self_loops=False).to_pyg()
    shuffled = plain.clone()
    order = torch.randperm(plain.num_nodes)
    for field in ("x", "y", "train_mask", "val_mask", "test_mask", "node_type"):
        shuffled[field] = plain[field][order]
    shuffled.node_id, shuffled.edge_index = plain.node_id[order], order.argsort()[plain.edge_index]
    edges, sorted_nodes = embedding._by_type(shuffled.edge_index, load(shuffled).node_types)
    ends = edges.edge_index()
    found = {tuple(pair) for pair in sorted_nodes[ends].T.tolist()}
    assert found == {tuple(pair) for pair in shuffled.edge_index.T.tolist()}
    assert load(shuffled, **WALKS).x.shape == (58, 6)


def test_neither_labels_nor_given_features_matter():
    graph = with_tags(small_hetero())
    before = load(graph, **WALKS).x
    graph["paper"].y = graph["paper"].y.flip(0).clamp(min=0)
    graph["paper"].x = torch.ones(40, 3)
    assert torch.equal(load(graph, **WALKS).x, before)


def test_they_are_computed_once(cache, monkeypatch):
    graph = with_tags(small_hetero())
    first = load(graph, **WALKS)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(embedding, "metapath2vec", lambda *_: pytest.fail("computed again"))
    again = load(graph, **WALKS)
    assert torch.equal(again.x, first.x)
    assert again.fingerprint() == first.fingerprint()


def test_a_type_with_edges_within_itself_is_walked_along_them_last():
    edges = typed_edges({**CHAIN, ("paper", "cites", "paper"): [(0, 1)]}, author=2, paper=3, field=1, institute=1)
    path = meta_path(edges, ["author", "paper", "field", "institute"], "paper")
    assert path[-1][::2] == ("paper", "paper")
    assert path[:-1] == meta_path(edges, ["author", "field", "institute"], "paper")


def test_a_homogeneous_graph_is_refused():
    with pytest.raises(InputError, match="`features=metapath2vec` walks between node types, and small has one"):
        load(small_data(), **WALKS)
