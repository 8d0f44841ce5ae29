"""The blocks of the label graph are the matrices they stand for."""

import torch
from hypothesis import given, settings
from tests.strategies import label_graphs

from legnn.nn.reference import dense_blocks


@given(label_graphs())
@settings(deadline=None)
def test_degrees_in_the_label_graph_are_row_sums_of_the_whole_matrix(graph):
    A, Y, S = dense_blocks(graph, torch.float64)
    torch.testing.assert_close(graph.node_degree.double(), A.sum(1) + Y.sum(1))
    torch.testing.assert_close(graph.label_degree.double(), Y.T.sum(1) + S.sum(1))
    torch.testing.assert_close(graph.label_count.double(), Y.sum(0))
    torch.testing.assert_close(graph.shows.double(), Y.sum(1))


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
    assert int(other.shows.sum()) == min(1, graph.shown.numel())
    assert torch.equal(other.shown, graph.shown[:1])


@given(label_graphs())
@settings(deadline=None)
def test_what_layers_derive_from_a_graph_is_computed_once_for_each_key(graph):
    made = []
    for key in ("a", "b", "a"):
        assert graph.cached(key, lambda key=key: made.append(key) or key) == key
    assert made == ["a", "b"]
    assert graph.show(graph.shown, graph.y).cached("a", lambda: "another graph") == "another graph"


@given(label_graphs())
@settings(deadline=None)
def test_what_depends_on_showing_a_label_follows_the_labels_shown(graph):
    for one in (graph, graph.show(graph.shown[:1], graph.y[:1])):
        (found,) = one.by_shown("degree in the label graph", lambda shows: (graph.degree + shows,))
        assert torch.equal(found, one.node_degree)
