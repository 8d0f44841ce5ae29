"""The label edges are the matrix `Y` and its transpose."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import label_graphs

from legnn.graph import Adjacency, LabelEdges, LabelGraph


def dense(adjacency: Adjacency) -> torch.Tensor:
    matrix = torch.zeros(adjacency.num_rows, adjacency.num_cols)
    return matrix.index_put((adjacency.row.long(), adjacency.col.long()), torch.ones(()), accumulate=True)


def shown_in_any_order(graph: LabelGraph) -> LabelGraph:
    order = torch.randperm(graph.shown.numel(), generator=torch.Generator().manual_seed(graph.num_nodes))
    return graph.show(graph.shown[order], graph.y[order])


@given(label_graphs(max_nodes=12))
@settings(deadline=None)
def test_the_classes_are_y_transposed_and_y_is_their_transpose(graph):
    graph = shown_in_any_order(graph)
    Y = torch.zeros(graph.num_nodes, graph.num_classes)
    Y[graph.shown, graph.y] = 1
    assert torch.equal(dense(graph.to_labels.classes), Y.T)
    assert torch.equal(dense(graph.to_labels.classes.transpose), Y)
    assert torch.equal(graph.to_nodes.label_of, torch.where(Y.any(1), Y.argmax(1), -1).int())


@given(label_graphs(max_nodes=12))
@settings(deadline=None)
def test_the_order_of_the_nodes_that_show_a_label_changes_nothing(graph):
    one, other = graph.to_labels, shown_in_any_order(graph).to_labels
    for name in ("label_of", "count", "position_in_classes"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    for name in ("rowptr", "col", "perm"):
        assert torch.equal(getattr(one.classes, name), getattr(other.classes, name))


@given(label_graphs(max_nodes=12), st.integers(0, 4))
@settings(deadline=None)
def test_padding_edges_are_read_by_no_sum(graph, padding):
    """The last node is padding, and all padding edges are from it."""
    edges, size = graph.to_labels, graph.num_nodes + 1
    shown = torch.cat([edges.shown, torch.full((padding,), size - 1)])
    y, padded_y = (torch.cat([edges.y, torch.full((padding,), fill)]) for fill in (0, edges.num_classes))
    padded = LabelEdges(shown, y, size, edges.num_classes, padded_y)
    assert torch.equal(padded.label_of[:-1], edges.label_of)
    assert padded.label_of[-1] == -1
    assert torch.equal(padded.count, edges.count)
    for ours, plain in ((padded.classes, edges.classes), (padded.classes.transpose, edges.classes.transpose)):
        assert torch.equal(ours.rowptr[: plain.rowptr.numel()], plain.rowptr)
        assert ours.rowptr[-1] == plain.num_edges, "padding belongs to no row"
        assert torch.equal(ours.col[: plain.num_edges], plain.col)
    assert torch.equal(padded.classes.transpose.row[padded.classes.perm][: edges.y.numel()], edges.classes.col)


@given(label_graphs(max_nodes=12))
@settings(deadline=None)
def test_every_node_knows_its_position_among_those_of_its_class(graph):
    edges = graph.to_labels
    position = edges.position_in_classes
    assert torch.equal(edges.classes.col[position[graph.shown].long()].long(), graph.shown)
    assert (position[edges.label_of < 0] >= graph.num_shown + graph.num_nodes).all()
