"""`Adjacency` is the dense matrix it stands for, in compressed rows."""

import copy
import gc
import pickle
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from legnn.graph import Adjacency
from legnn.ops.csr import cpu, reference


def dense(adjacency: Adjacency) -> torch.Tensor:
    weight = torch.ones(adjacency.num_edges, dtype=torch.float64) if adjacency.weight is None else adjacency.weight
    matrix = torch.zeros(adjacency.num_rows, adjacency.num_cols, dtype=torch.float64)
    return matrix.index_put((adjacency.row, adjacency.col), weight.double(), accumulate=True)


@st.composite
def edge_lists(draw, symmetric: bool = False):
    nodes = draw(st.integers(1, 8))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(edges), max_size=len(edges)))
    if symmetric:
        pairs = [(edge, value) for edge, value in zip(edges, weight, strict=True)]
        pairs += [((target, source), value) for (source, target), value in pairs]
        merged = dict(pairs)
        merged = {edge: min(value, merged[edge[::-1]]) for edge, value in merged.items()}
        edges, weight = list(merged), list(merged.values())
    weight = torch.tensor(weight, dtype=torch.float64) if draw(st.booleans()) else None
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T, nodes, weight


@given(edge_lists())
@settings(deadline=None)
def test_rows_are_targets_and_columns_are_sources(graph):
    edge_index, nodes, weight = graph
    expected = torch.zeros(nodes, nodes, dtype=torch.float64)
    values = torch.ones(edge_index.size(1)) if weight is None else weight
    for source, target, value in zip(*edge_index.tolist(), values.tolist(), strict=True):
        expected[target, source] += value
    adjacency = Adjacency.from_edge_index(edge_index, nodes, weight)
    assert torch.equal(dense(adjacency), expected)
    assert torch.equal(adjacency.degree.double(), expected.sum(1))
    assert adjacency.num_edges == edge_index.size(1)
    assert (adjacency.num_rows, adjacency.num_cols) == (nodes, nodes)


@given(edge_lists())
@settings(deadline=None)
def test_edges_ascend_by_row_and_within_a_row_by_column(graph):
    edge_index, nodes, weight = graph
    adjacency = Adjacency.from_edge_index(edge_index, nodes, weight)
    places = list(zip(adjacency.row.tolist(), adjacency.col.tolist(), strict=True))
    assert places == sorted(places)
    assert sorted(map(tuple, adjacency.edge_index.T.tolist())) == sorted(map(tuple, edge_index.T.tolist()))


@given(edge_lists())
@settings(deadline=None)
def test_counting_orders_edges_as_a_stable_sort_does(graph):
    edge_index, nodes, _ = graph
    weight = 1 + torch.arange(edge_index.size(1)).double()  # tells parallel edges apart
    source, target = edge_index
    order = torch.argsort(target * nodes + source, stable=True)
    expected = Adjacency.from_sorted(target[order], source[order], weight[order], nodes, nodes)
    adjacency = Adjacency.from_edge_index(edge_index, nodes, weight)
    for field in ("rowptr", "col", "weight"):
        assert torch.equal(getattr(adjacency, field), getattr(expected, field))
        assert getattr(adjacency, field).dtype == getattr(expected, field).dtype


@given(edge_lists())
@settings(deadline=None)
def test_the_transpose_is_the_transpose(graph):
    adjacency = Adjacency.from_edge_index(*graph[:2], graph[2])
    assert torch.equal(dense(adjacency.transpose), dense(adjacency).T)
    assert torch.equal(dense(adjacency.transpose.transpose), dense(adjacency))


@pytest.mark.parametrize("padding", [0, 3])
@given(edge_lists())
@settings(deadline=None)
def test_counting_gives_the_transpose_that_sorting_gives(padding, graph):
    adjacency = Adjacency.from_edge_index(*graph[:2], graph[2])
    col = torch.cat([adjacency.col, adjacency.col.new_full((padding,), adjacency.num_cols)])
    counted = cpu.transpose(adjacency.rowptr, col, adjacency.num_cols)
    expected = reference.transpose(adjacency.rowptr, col, adjacency.num_cols)
    assert all(torch.equal(ours.long(), theirs.long()) for ours, theirs in zip(counted, expected, strict=True))


@given(edge_lists())
@settings(deadline=None)
def test_edges_find_their_positions_in_the_transpose(graph):
    adjacency = Adjacency.from_edge_index(*graph[:2], graph[2])
    assert torch.equal(adjacency.transpose.row[adjacency.perm], adjacency.col)
    assert torch.equal(adjacency.transpose.col[adjacency.perm], adjacency.row)
    assert torch.equal(adjacency.inv_perm[adjacency.perm].long(), torch.arange(adjacency.num_edges))


@given(edge_lists(), st.data())
@settings(deadline=None)
def test_edges_of_rows_come_row_after_row(graph, data):
    adjacency = Adjacency.from_edge_index(*graph[:2])
    rows = data.draw(st.lists(st.integers(0, adjacency.num_rows - 1)))
    expected = [e for row in rows for e in range(int(adjacency.rowptr[row]), int(adjacency.rowptr[row + 1]))]
    assert adjacency.edges_of(torch.tensor(rows, dtype=torch.long)).tolist() == expected


@given(edge_lists())
@settings(deadline=None)
def test_other_weights_have_the_transpose_of_their_own(graph):
    adjacency = Adjacency.from_edge_index(*graph[:2])
    weight = torch.rand(adjacency.num_edges, dtype=torch.float64) + 0.5
    for other in (adjacency.with_weight(weight), adjacency.with_weight_both_ways(weight)):
        assert torch.equal(dense(other.transpose), dense(other).T)
        assert torch.equal(other.row, adjacency.row)
        torch.testing.assert_close(other.degree.double(), dense(other).sum(1))


@given(edge_lists(symmetric=True))
@settings(deadline=None)
def test_a_symmetric_graph_is_its_own_transpose(graph):
    edge_index, nodes, weight = graph
    adjacency = Adjacency.from_edge_index(edge_index, nodes, weight)
    assert adjacency.transpose is adjacency


def test_a_directed_graph_is_not_its_own_transpose():
    adjacency = Adjacency.from_edge_index(torch.tensor([[0], [1]]), 2)
    assert adjacency.transpose is not adjacency
    assert adjacency.transpose.edge_index.tolist() == [[1], [0]]


def test_a_graph_symmetric_but_for_its_weights_is_not_its_own_transpose():
    edges = torch.tensor([[0, 1], [1, 0]])
    adjacency = Adjacency.from_edge_index(edges, 2, torch.tensor([1.0, 2.0]))
    assert dense(adjacency).tolist() == [[0, 2], [1, 0]]
    assert dense(adjacency.transpose).tolist() == [[0, 1], [2, 0]]


def test_a_rectangular_adjacency_has_a_rectangular_transpose():
    adjacency = Adjacency.from_sorted(torch.tensor([0, 0, 1]), torch.tensor([2, 4, 0]), None, 2, 5)
    assert tuple(dense(adjacency.transpose).shape) == (5, 2)
    assert torch.equal(dense(adjacency.transpose), dense(adjacency).T)


@pytest.mark.parametrize("weight", [None, torch.tensor([0.5, 2.0])])
def test_an_adjacency_moves_to_a_device_whole(weight):
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3, weight)
    moved = adjacency.to("meta")
    assert moved.rowptr.device.type == moved.col.device.type == "meta"
    assert weight is None or moved.weight.device.type == "meta"
    assert torch.equal(dense(adjacency.to("cpu")), dense(adjacency))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_adjacency_on_the_gpu_is_the_same():
    adjacency = Adjacency.from_edge_index(torch.randint(0, 30, (2, 200)), 30)
    assert torch.equal(dense(adjacency.to("cuda").to("cpu")), dense(adjacency))


@pytest.mark.parametrize("edges", [[[0, 1], [1, 0]], [[0, 1, 2], [1, 2, 0]]], ids=["symmetric", "directed"])
def test_it_is_freed_with_its_transpose_as_soon_as_nobody_holds_it(edges):
    adjacency = Adjacency.from_edge_index(torch.tensor(edges), 3)
    both = weakref.ref(adjacency), weakref.ref(adjacency.transpose.rowptr)
    assert torch.equal(adjacency.transpose.transpose.col, adjacency.col)
    gc.collect()
    gc.disable()
    try:
        del adjacency
        assert [one() for one in both] == [None, None], "a cycle would hold the memory of a graph"
    finally:
        gc.enable()


@pytest.mark.parametrize("edges", [[[0, 1], [1, 0]], [[0, 1, 2], [1, 2, 0]]], ids=["symmetric", "directed"])
@pytest.mark.parametrize("copy", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_a_copy_has_a_transpose_of_its_own(edges, copy):
    adjacency = Adjacency.from_edge_index(torch.tensor(edges), 3)
    expected, is_symmetric = adjacency.transpose.col.clone(), adjacency.transpose is adjacency
    other = copy(adjacency)
    del adjacency
    gc.collect()
    assert (other.transpose is other) == is_symmetric
    assert torch.equal(other.transpose.col, expected)
