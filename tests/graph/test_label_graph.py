"""The blocks of the label graph are the matrices they stand for."""

import contextlib
import copy
import pickle
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from tests.strategies import label_graphs

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.graph.sampling import full_node_block
from legnn.nn import GAT, GCN, SAGE
from legnn.nn.reference import dense_blocks


@given(label_graphs())
@settings(deadline=None)
def test_degrees_in_the_label_graph_are_row_sums_of_the_whole_matrix(graph):
    A, Y, S = dense_blocks(graph, torch.float64)
    torch.testing.assert_close(graph.node_degree.double(), A.sum(1) + Y.sum(1))
    torch.testing.assert_close(graph.label_degree.double(), Y.T.sum(1) + S.sum(1))
    torch.testing.assert_close(graph.label_count.double(), Y.sum(0))
    torch.testing.assert_close(graph.label_degree_of_node.double(), Y.sum(1))


@given(label_graphs())
@settings(deadline=None)
def test_relations_count_the_blocks_that_really_come_in(graph):
    _, Y, S = dense_blocks(graph, torch.float64)
    at_labels = (Y.T.sum(1) > 0).long() + (S.sum(1) > 0).long()
    assert graph.label_relations.tolist() == at_labels.clamp(min=1).tolist()


@given(label_graphs())
@settings(deadline=None)
def test_showing_other_labels_changes_the_label_edges_alone(graph):
    other = graph.show(graph.shown[:1], graph.y[:1])
    assert other.adjacency is graph.adjacency
    assert other.label_adjacency is graph.label_adjacency
    assert int(other.label_degree_of_node.sum()) == min(1, graph.shown.numel())
    assert torch.equal(other.shown, graph.shown[:1])


@given(label_graphs())
@settings(deadline=None)
def test_what_layers_derive_from_a_graph_is_computed_once_for_each_key(graph):
    made = []
    for key in ("a", "b", "a"):
        assert graph.cached(key, lambda key=key: made.append(key) or key) == key
    assert made == ["a", "b"]
    assert graph.show(graph.shown, graph.y).cached("a", lambda: "another graph") == "another graph"


def test_what_depends_on_the_edges_alone_is_computed_once_for_all_labels_shown():
    graph = ring()
    first = graph.adjacency.cached("key", object)
    assert graph.show(torch.tensor([0]), torch.tensor([1])).adjacency.cached("key", object) is first


def test_a_block_with_other_degrees_sends_other_messages():
    graph, network, x, labels = ring(), GCN(4, 4), torch.randn(6, 4), torch.randn(3, 4)
    block = full_node_block(graph, torch.tensor([0, 1]))
    other = replace(block, source_degrees=block.source_degrees + 3)
    first, second = (network(x[block.nodes], labels, one)[0] for one in (block, other))
    assert not torch.equal(first, second)


def test_a_copy_of_a_graph_has_a_cache_of_its_own():
    graph = ring()
    first = graph.cached("key", object)
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)), replace(graph)):
        assert other.cached("key", object) is not first
        assert torch.equal(other.node_degree, graph.node_degree)


@pytest.mark.parametrize("layer", [GCN, SAGE, GAT])
def test_a_graph_first_read_in_inference_mode_can_be_trained_on(layer):
    graph, network, x, labels = ring(), layer(4, 4), torch.randn(6, 4), torch.randn(3, 4)
    with torch.inference_mode():
        expected = network(x, labels, graph)
    found = network(x, labels, graph)
    (found[0].sum() + found[1].sum()).backward()
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert network.label.weight.grad.isfinite().all()


@pytest.mark.parametrize("layer", [GCN, SAGE, GAT])
def test_a_trace_leaves_nothing_in_the_caches_of_a_graph(layer):
    class Traced(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.graph, self.labels = layer(4, 4), ring(), torch.randn(3, 4)

        def forward(self, x):
            return self.layer(x, self.labels, self.graph)

    network, x = Traced(), torch.randn(6, 4)
    with pytest.raises(InputError, match=r"torch\.export does not support operations on graphs"):
        torch.export.export(network, (x,), strict=False)
    with contextlib.suppress(Exception):
        torch.export.export(network, (x,), strict=True)
    fresh = network.layer(x, network.labels, ring())
    found = network(x)
    assert all(type(one) is torch.Tensor for one in found)
    assert all(torch.equal(*pair) for pair in zip(found, fresh, strict=True))


def ring() -> LabelGraph:
    nodes = torch.arange(6)
    adjacency = Adjacency.from_edge_index(torch.stack([nodes, (nodes + 1) % 6]), 6)
    return LabelGraph.without_labels(adjacency, 3).show(torch.tensor([1, 4]), torch.tensor([0, 2]))
