"""`features=metapath2vec`: features of all node types from random walks alone, in the place of those of the data."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.data.cache_entries import scale_entry
from tests.graphs import small_data
from tests.typed_graphs import small_hetero, typed_edges, with_tags
from torch_geometric.data import HeteroData

from legnn.data.embedding import trips
from legnn.data.node_types import EdgesByTypes, NodeTypes
from legnn.data.skip_gram import NEGATIVES, draw_walks, embed_walks, skip_gram
from legnn.datasets import load
from legnn.errors import InputError

WALKS = {"features": "metapath2vec", "type_channels": 6}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "legnn" / "embeddings"


def typed(graph: HeteroData) -> tuple[NodeTypes, EdgesByTypes]:
    relations = {edge: graph[edge].edge_index.T.tolist() for edge in graph.edge_types}
    types, edge_index = typed_edges(relations, author=12, paper=40, tag=6)
    return types, types.edges(edge_index)


def test_features_of_every_type_are_those_of_walks_from_the_labeled_one():
    graph = with_tags(small_hetero(author_channels=20))
    data = load(graph, **WALKS)
    types, edges = typed(graph)
    assert torch.equal(data.x, embed_walks(types, edges, trips(types, edges), 6, seed=0))
    assert data.x.any(1).all()
    assert data.provenance.computed_features == ["author", "paper", "tag"]
    assert data.node_types.columns == [[*"012345"]] * 3
    assert data.notes[-1].code == "features-computed"


def test_walks_go_along_edges_and_along_the_types_of_their_trip():
    types, edges = typed(with_tags(small_hetero()))
    ways = trips(types, edges)
    assert {trip[1] for trip in ways} == {"author", "tag", "paper"}
    assert {trip[0] for trip in ways} == {trip[-1] for trip in ways} == {"paper"}
    walks = draw_walks(types, edges, ways[:1], np.random.default_rng(0))
    joined = {tuple(pair) for each in edges.values() for pair in each.T.tolist()}
    kinds = ["author"] * 12 + ["paper"] * 40 + ["tag"] * 6
    for walk in walks.tolist():
        nodes = [node for node in walk if node >= 0]
        assert walk == nodes + [-1] * (len(walk) - len(nodes))
        assert all(pair in joined for pair in pairwise(nodes))
        assert [kinds[node] for node in nodes] == [ways[0][step % 2] for step in range(len(nodes))]


def test_a_walk_ends_at_a_node_without_a_next_edge():
    relations = {("paper", "has", "tag"): [(0, 0), (2, 1)], ("tag", "of", "field"): [(0, 0)]}
    types, edge_index = typed_edges(relations, paper=3, tag=2, field=1)
    trip = ["paper", "tag", "field", "tag", "paper"]
    walks = np.unique(draw_walks(types, types.edges(edge_index), [trip], np.random.default_rng(0)), axis=0)
    assert walks[:, :5].tolist() == [[0, 3, 5, 3, 0], [2, 4, -1, -1, -1]], "paper 1 has no tag, and tag 1 no field"


def test_a_step_of_skip_gram_is_one_of_gradient_descent():
    walks = np.array([[0, 1, -1]], np.int32)
    random = np.random.default_rng(0)
    x, context = (random.standard_normal((4, 3)).astype(np.float32) for _ in range(2))
    rows, others = torch.tensor(x).double(), torch.tensor(context).double()
    # the only negative that can be drawn
    skip_gram(walks, x, context, np.array([3], np.int32), np.float32(0.1), np.uint64(1))
    for i, j in ((0, 1), (1, 0)):
        row, near = rows[i].clone(), {j: 1.0, 3: 0.0}
        change = torch.zeros(3, dtype=torch.float64)
        for other in (j, *[3] * NEGATIVES):
            slope = 0.1 * (near[other] - torch.sigmoid(row @ others[other]))
            change += slope * others[other]
            others[other] += slope * row
        rows[i] += change
    torch.testing.assert_close(torch.tensor(x).double(), rows, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.tensor(context).double(), others, rtol=1e-5, atol=1e-6)


def test_papers_of_the_same_author_are_more_alike_than_others():
    writes = [(author, 5 * author + paper) for author in range(4) for paper in range(5)]
    types, edge_index = typed_edges({("author", "writes", "paper"): writes}, author=4, paper=20)
    edges = types.edges(edge_index)
    x = torch.nn.functional.normalize(embed_walks(types, edges, trips(types, edges), 8, seed=0)[4:])
    alike, same = x @ x.T, torch.arange(20)[:, None] // 5 == torch.arange(20) // 5
    assert alike[same].mean() > alike[~same].mean() + 0.3


def test_the_order_of_the_nodes_does_not_matter():
    plain = load(with_tags(small_hetero()), self_loops=False).to_pyg()
    shuffled = plain.clone()
    order = torch.randperm(plain.num_nodes)
    for field in ("x", "y", "train_mask", "val_mask", "test_mask", "node_type"):
        shuffled[field] = plain[field][order]
    shuffled.node_id, shuffled.edge_index = plain.node_id[order], order.argsort()[plain.edge_index]
    types = load(shuffled).node_types
    edges = types.edges(shuffled.edge_index)
    for (source, target), ends in edges.items():
        assert {types.names[kind] for kind in types.node_type[ends[0]].tolist()} == {source}
        assert {types.names[kind] for kind in types.node_type[ends[1]].tolist()} == {target}
    both = torch.cat([shuffled.edge_index, shuffled.edge_index.flip(0)], 1)
    assert sorted(torch.cat(list(edges.values()), 1).T.tolist()) == sorted(both.T.tolist())
    assert load(shuffled, **WALKS).x.any(1).all()


def test_neither_labels_nor_given_features_matter():
    graph = with_tags(small_hetero())
    before = load(graph, **WALKS).x
    graph["paper"].y = graph["paper"].y.flip(0).clamp(min=0)
    graph["paper"].x = torch.ones(40, 3)
    assert torch.equal(load(graph, **WALKS).x, before)


def test_features_of_walks_are_read_from_the_cache(cache):
    graph = with_tags(small_hetero())
    first = load(graph, **WALKS)
    scaled = scale_entry(cache, 2.0)
    again = load(graph, **WALKS)
    assert torch.equal(scaled, 2 * first.x)
    assert torch.equal(again.x, scaled)
    assert again.fingerprint() == first.fingerprint()


def test_a_homogeneous_graph_is_refused():
    with pytest.raises(InputError, match=r"`data\.features=metapath2vec` walks between node types, and small has one"):
        load(small_data(), **WALKS)
