"""Preparing edges, and drawing splits: properties that hold for every graph."""

import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import add_remaining_self_loops, coalesce, is_undirected, to_undirected

from legnn.data import prepare
from legnn.data.splits import stratified_split

# the package gives the function of this name
statistics = importlib.import_module("legnn.data.statistics")

NODES = 6
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(1, 8)), min_size=1)


def graph(edges: list[tuple[int, int, int]], weighted: bool) -> Data:
    table = torch.tensor(edges)
    data = Data(x=torch.zeros(NODES, 1), edge_index=table[:, :2].t().contiguous())
    if weighted:
        data.edge_weight = table[:, 2].float()
    return data


@settings(deadline=None)
@given(EDGES, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_edges_are_those_of_pygs_functions(edges, weighted, undirected, remove_duplicates, self_loops):
    data = graph(edges, weighted)
    edge_index, weight = data.edge_index, data.get("edge_weight")
    if undirected:
        edge_index, weight = to_undirected(edge_index, weight, num_nodes=NODES, reduce="mean")
    elif remove_duplicates:
        edge_index, weight = coalesce(edge_index, weight, num_nodes=NODES, reduce="mean")
    if self_loops:
        edge_index, weight = add_remaining_self_loops(edge_index, weight, fill_value=1.0, num_nodes=NODES)
    prepared = prepare(data, undirected=undirected, remove_duplicates=remove_duplicates, self_loops=self_loops)
    assert torch.equal(prepared.edge_index, edge_index)
    assert prepared.edge_index.is_contiguous()
    assert not weighted or torch.equal(prepared.edge_weight, weight)


def test_an_edge_outside_of_the_graph_is_refused_not_followed():
    with pytest.raises(IndexError, match="outside of 0 to 5"):
        prepare(graph([(0, NODES, 1)], weighted=False))


@given(EDGES, st.lists(st.integers(-1, 2), min_size=NODES, max_size=NODES), st.sampled_from([1, 2, 100]))
def test_homophily_is_the_part_of_alike_ends_among_labeled_ones(edges, labels, chunk):
    both = [(labels[s], labels[t]) for s, t, _ in edges if labels[s] >= 0 and labels[t] >= 0]
    expected = sum(a == b for a, b in both) / len(both) if both else float("nan")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "CHUNK", chunk)
        found = statistics.edge_homophily(graph(edges, weighted=False).edge_index, torch.tensor(labels))
    assert found == expected or (np.isnan(found) and np.isnan(expected))


@settings(deadline=None)
@given(EDGES, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_preparing_twice_changes_nothing_more(edges, weighted, undirected, remove_duplicates, self_loops):
    options = {"undirected": undirected, "remove_duplicates": remove_duplicates, "self_loops": self_loops}
    once = prepare(graph(edges, weighted), **options)
    twice = prepare(once, **options)
    assert torch.equal(twice.edge_index, once.edge_index)
    if weighted:
        assert torch.allclose(twice.edge_weight, once.edge_weight)
    else:
        assert "edge_weight" not in once


@settings(deadline=None)
@given(EDGES, st.booleans(), st.booleans())
def test_an_undirected_graph_is_symmetric_and_has_each_edge_once(edges, weighted, self_loops):
    given = graph(edges, weighted)
    if weighted:
        given.edge_weight /= 3  # sums of thirds are rounded
    data = prepare(given, self_loops=self_loops)
    assert is_undirected(data.edge_index, num_nodes=NODES)
    assert len(set(map(tuple, data.edge_index.t().tolist()))) == data.edge_index.shape[1]
    if weighted:
        dense = torch.zeros(NODES, NODES)
        dense[data.edge_index[0], data.edge_index[1]] = data.edge_weight
        assert torch.equal(dense, dense.t())


@settings(deadline=None)
@given(EDGES)
def test_every_node_has_one_self_loop(edges):
    source, target = prepare(graph(edges, weighted=False), undirected=False).edge_index
    assert torch.bincount(source[source == target], minlength=NODES).tolist() == [1] * NODES


def test_the_graph_given_keeps_its_edges():
    data = graph([(0, 1, 1)], weighted=True)
    prepare(data)
    assert data.edge_index.tolist() == [[0], [1]]
    assert data.edge_weight.tolist() == [1.0]


def test_both_directions_listed_keep_the_scale_of_the_weights():
    data = prepare(graph([(0, 1, 2), (1, 0, 4)], weighted=True), self_loops=False)
    assert data.edge_weight.tolist() == [3.0, 3.0]


def test_a_self_loop_keeps_its_weight_and_an_added_one_weighs_one():
    data = prepare(graph([(0, 0, 5), (0, 1, 2)], weighted=True))
    loops = data.edge_index[0] == data.edge_index[1]
    assert data.edge_weight[loops].tolist() == [5.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_nothing_asked_for_changes_nothing():
    data = graph([(3, 1, 2), (0, 1, 2), (3, 1, 2)], weighted=False)
    same = prepare(data, undirected=False, remove_duplicates=False, self_loops=False)
    assert torch.equal(same.edge_index, data.edge_index)


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60), st.integers(0, 5))
def test_a_drawn_split_trains_every_class_and_never_overlaps(labels, seed):
    y = torch.tensor(labels)
    split = stratified_split(y, seed)
    assert torch.equal(sum(mask.int() for mask in split), (y >= 0).int())
    for c in set(labels) - {-1}:
        size = labels.count(c)
        assert int(split.train[y == c].sum()) >= 1
        assert size < 2 or int(split.val[y == c].sum()) >= 1
        assert abs(int(split.train[y == c].sum()) - 0.6 * size) <= 1


def test_a_drawn_split_depends_on_the_seed_alone():
    y = torch.from_numpy(np.arange(100) % 3)
    assert torch.equal(stratified_split(y, 1).train, stratified_split(y, 1).train)
    assert not torch.equal(stratified_split(y, 1).train, stratified_split(y, 2).train)
