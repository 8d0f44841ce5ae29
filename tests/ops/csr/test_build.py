"""The rows built from edges are those of PyG's functions, sorted."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import add_remaining_self_loops, coalesce

from legnn.graph import Adjacency
from legnn.ops.csr.build import CSR, edges_to_csr

NODES = 6
WEIGHT = st.floats(0.125, 8, width=32)
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), WEIGHT))
OPTIONS = st.fixed_dictionaries({name: st.booleans() for name in ("undirected", "remove_duplicates", "self_loops")})


def arrays(edges: list[tuple[int, int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    source, target, weight = zip(*edges, strict=True) if edges else ((), (), ())
    return np.array(source, np.int64), np.array(target, np.int64), np.array(weight, np.float32)


def build(edges, nodes: int = NODES, *, undirected=False, remove_duplicates=False, self_loops=False) -> CSR:
    return edges_to_csr(
        *arrays(edges), nodes, undirected=undirected, remove_duplicates=remove_duplicates, self_loops=self_loops
    )


def by_pyg(edge_index, weight, *, undirected: bool, remove_duplicates: bool, self_loops: bool) -> Adjacency:
    """In double precision, rounded once, as merged weights are."""
    weight = None if weight is None else weight.double()
    if undirected:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
        weight = None if weight is None else torch.cat([weight, weight])
    if remove_duplicates:
        edge_index, weight = coalesce(edge_index, weight, num_nodes=NODES, reduce="mean")
    if self_loops:
        edge_index, weight = add_remaining_self_loops(edge_index, weight, fill_value=1.0, num_nodes=NODES)
    return Adjacency.from_edge_index(edge_index, NODES, None if weight is None else weight.float())


@settings(deadline=None)
@given(EDGES, st.booleans(), OPTIONS)
def test_rows_are_those_of_pygs_functions_to_the_bit(edges, weighted, options):
    source, target, weight = arrays(edges)
    expected = by_pyg(
        torch.from_numpy(np.stack([source, target])), torch.from_numpy(weight) if weighted else None, **options
    )
    csr = edges_to_csr(source, target, weight if weighted else None, NODES, **options)
    for ours, theirs in zip(csr, (expected.rowptr, expected.col, expected.weight), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.numpy().dtype
            assert ours.tolist() == theirs.tolist()


@settings(deadline=None)
@given(EDGES, OPTIONS)
def test_what_was_given_stays_as_it_was(edges, options):
    source, target, weight = arrays(edges)
    before = source.copy(), target.copy(), weight.copy()
    edges_to_csr(source, target, weight, NODES, **options)
    assert all(map(np.array_equal, before, (source, target, weight)))


@settings(deadline=None)
@given(EDGES, st.booleans())
def test_undirected_rows_are_symmetric_to_the_bit(edges, self_loops):
    csr = build(edges, undirected=True, remove_duplicates=True, self_loops=self_loops)
    dense = np.zeros((NODES, NODES), np.float32)
    dense[np.repeat(np.arange(NODES), np.diff(csr.rowptr)), csr.col] = csr.weight
    assert np.array_equal(dense, dense.T)


def test_parallel_edges_keep_their_order_unless_they_are_merged():
    edges = [(3, 1, 2.0), (0, 1, 5.0), (3, 1, 1.0)]
    kept, merged = build(edges), build(edges, remove_duplicates=True)
    assert (kept.col.tolist(), kept.weight.tolist()) == ([0, 3, 3], [5.0, 2.0, 1.0])
    assert (merged.col.tolist(), merged.weight.tolist()) == ([0, 3], [5.0, 1.5])


def test_edges_in_both_directions_are_two_each_way_unless_they_are_merged():
    edges = [(0, 1, 1.0), (1, 0, 3.0), (2, 2, 5.0)]
    kept = build(edges, 3, undirected=True)
    assert (kept.rowptr.tolist(), kept.col.tolist()) == ([0, 2, 4, 6], [1, 1, 0, 0, 2, 2])
    assert sorted(kept.weight[:2].tolist()) == sorted(kept.weight[2:4].tolist()) == [1.0, 3.0]
    merged = build(edges, 3, undirected=True, remove_duplicates=True)
    assert (merged.col.tolist(), merged.weight.tolist()) == ([1, 0, 2], [2.0, 2.0, 5.0])


@settings(deadline=None)
@given(EDGES)
def test_with_parallel_edges_there_is_still_one_self_loop_a_node(edges):
    csr = build(edges, undirected=True, self_loops=True)
    row = np.repeat(np.arange(NODES), np.diff(csr.rowptr))
    assert np.array_equal(row[row == csr.col], np.arange(NODES))
    assert len(row) == 2 * sum(source != target for source, target, _ in edges) + NODES


@settings(deadline=None)
@given(EDGES)
def test_without_weights_parallel_edges_of_both_directions_are_their_own_transpose(edges):
    source, target, _ = arrays(edges)
    options = {"undirected": True, "remove_duplicates": False, "self_loops": True}
    adjacency = Adjacency.from_csr(edges_to_csr(source, target, None, NODES, **options), NODES)
    assert adjacency.transpose is adjacency


def test_a_self_loop_keeps_its_weight_and_an_added_one_weighs_one_in_its_sorted_place():
    csr = build([(0, 0, 5.0), (2, 1, 3.0), (0, 1, 4.0)], 3, self_loops=True)
    assert csr.rowptr.tolist() == [0, 1, 4, 5]
    assert csr.col.tolist() == [0, 0, 1, 2, 2]
    assert csr.weight.tolist() == [5.0, 4.0, 1.0, 3.0, 1.0]


@pytest.mark.parametrize("self_loops", [False, True])
def test_a_graph_without_edges_or_without_nodes_has_rows_too(self_loops):
    for nodes in (0, 3):
        csr = build([], nodes, undirected=True, remove_duplicates=True, self_loops=self_loops)
        assert csr.col.tolist() == (list(range(nodes)) if self_loops else [])
        assert csr.rowptr.tolist() == (list(range(nodes + 1)) if self_loops else [0] * (nodes + 1))


@pytest.mark.parametrize("edge", [(0, NODES, 1.0), (-1, 0, 1.0)])
def test_an_edge_outside_of_the_graph_is_refused(edge):
    with pytest.raises(IndexError, match="outside of 0 to 5"):
        build([edge])
