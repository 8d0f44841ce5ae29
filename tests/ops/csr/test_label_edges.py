"""The label edges are the matrix `Y` and its transpose."""

import pytest
import torch
from hypothesis import given, settings
from tests.ops.forms import GPU
from tests.strategies import label_graphs

from legnn.graph import Adjacency, LabelGraph
from legnn.ops.csr.label_edges import LabelEdges, class_chunk

DEVICE = "cuda" if GPU else "cpu"


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
    assert sorted(graph.to_labels.classes.transpose.nonempty_rows.tolist()) == sorted(graph.shown.tolist())


@given(label_graphs(max_nodes=12))
@settings(deadline=None)
def test_an_edge_is_found_again_in_the_transpose(graph):
    for adjacency in (graph.adjacency, shown_in_any_order(graph).to_labels.classes):
        transposition = adjacency.transposition
        there = transposition.place.long()
        assert torch.equal(transposition.adjacency.row[there], adjacency.col)
        assert torch.equal(transposition.adjacency.col[there], adjacency.row)
        assert torch.equal(transposition.origin[there].long(), torch.arange(adjacency.num_edges))
        if adjacency.weight is not None:
            assert torch.equal(transposition.adjacency.weight[there], adjacency.weight)


@pytest.mark.parametrize(("nodes", "count"), [(1, 1), (5, 0), (300, 270)])
@pytest.mark.parametrize("num_classes", [7, 8, 1025])
def test_a_gpu_reads_and_counts_the_classes_of_the_nodes_that_show_them(nodes, count, num_classes):
    from legnn.ops.csr.triton_kernels import show_labels

    shown, classes = torch.randperm(nodes, device=DEVICE)[:count], torch.randint(num_classes, (nodes,), device=DEVICE)
    edges = LabelEdges.from_classes(shown.cpu(), classes.cpu(), num_classes)
    assert torch.equal(edges.y, classes[shown].cpu())
    y, label_of, count_minus_one = show_labels(shown, classes, num_classes)
    assert torch.equal(y.cpu(), edges.y)
    assert torch.equal(label_of.cpu(), edges.label_of)
    assert torch.equal(edges.count_minus_one, edges.count.int() - 1)
    assert count_minus_one is None if num_classes > 1024 else torch.equal(count_minus_one.cpu(), edges.count_minus_one)


# thousands of programs would take the interpreter minutes
LARGE = [pytest.param(170_000, 40, 45_000, marks=pytest.mark.gpu), pytest.param(300_000, 7, 99, marks=pytest.mark.gpu)]


@pytest.mark.parametrize(
    ("nodes", "classes", "count"),
    [(1, 1, 1), (5, 3, 0), (40, 100, 30), (300, 7, 150), (300, 1, 300), (300, 600, 290), *(LARGE if GPU else [])],
)
def test_counting_on_a_gpu_gives_the_order_of_sorting(nodes, classes, count):
    from legnn.ops.csr.triton_kernels import order_by_class, write_labels

    shown, y = torch.randperm(nodes, device=DEVICE)[:count], torch.randint(classes, (count,), device=DEVICE)
    edges = LabelEdges(shown.cpu(), y.cpu(), nodes, classes)
    label_of = write_labels(shown, y, nodes)
    assert torch.equal(label_of.cpu(), edges.label_of)
    sorted_, chunks = edges.classes, edges.classes.row_chunks
    rows, place = sorted_.transposition.adjacency, sorted_.transposition.place
    bounds = torch.arange(count + 1)
    assert torch.equal(torch.stack(rows.nonempty_spans), torch.stack([bounds[:-1], bounds[1:]]))
    expected = [rows.rowptr, rows.col, rows.nonempty_rows, bounds, sorted_.rowptr, sorted_.col, place]
    expected += [chunks.rows, chunks.pointer, chunks.owner, chunks.first, chunks.last]
    found = order_by_class(label_of, count, classes, class_chunk(count), chunks.owner.numel())
    assert all(torch.equal(ours.cpu(), plain.int()) for ours, plain in zip(found, expected, strict=True))


def test_a_program_counts_as_many_nodes_of_the_last_class_as_it_has():
    from legnn.ops.csr.triton_kernels import order_by_class

    # of eight classes the last is counted in the byte that has the sign
    label_of = torch.full((300,), 7, dtype=torch.int32, device=DEVICE)
    found = order_by_class(label_of, 300, 8, 64, 13)
    assert found.col.tolist() == list(range(300))
