"""Sums over neighbors and classes: plain PyTorch equals the dense equation, and the compiled forms equal plain PyTorch,
values and gradients, in single precision and bf16, at odd and empty sizes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS, assert_equal, many, pair, random_scales, to, using
from tests.ops.graphs import SIZES, dense, gradients, hub, one_hot, random_graph, with_labels
from tests.strategies import label_graphs

from legnn import ops
from legnn.graph import Adjacency
from legnn.nn.features import SparseFeatures
from legnn.ops import Scales
from legnn.ops.propagate import reference

FAST_SIZES = [(1, 0, 1), (2, 5, 3), (31, 100, 60), (5, 0, 4), (11, 50, 139)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), [*SIZES, (5, 0, 4), (5, 7, 0), (0, 0, 4)])
def test_propagation_is_the_scaled_product_with_the_label_graph(nodes, edges, channels, directed, weighted):
    graph = with_labels(random_graph(nodes, edges, torch.float64, weighted=weighted, directed=directed))
    x = torch.randn(nodes, channels, dtype=torch.float64, requires_grad=True)
    labels = torch.randn(5, channels, dtype=torch.float64, requires_grad=True)
    scales = Scales(*torch.rand(4, nodes, dtype=torch.float64))
    A, Y = dense(graph.adjacency, torch.float64), one_hot(graph)
    s, t, own, c = (scale[:, None] for scale in (scales.source, scales.target, scales.from_label, scales.to_label))
    add = torch.randn(nodes, channels, dtype=torch.float64, requires_grad=True)
    expected = t * (A @ (s * x)) + own * (Y @ labels) + add, Y.T @ (c * x)
    found = reference.propagate_messages(graph, x, labels, add, scales, update_labels=True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found, [x, labels, add]), gradients(expected, [x, labels, add]))


@given(label_graphs(label_edges=False))
@settings(max_examples=20, deadline=None)
def test_class_sums_and_gathers_are_products_with_the_one_hot_matrix(graph):
    Y = one_hot(graph)
    x = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    labels = torch.randn(graph.num_classes, 3, dtype=torch.float64)
    torch.testing.assert_close(reference.neighbor_sum(graph.to_labels.classes, x), Y.T @ x)
    torch.testing.assert_close(reference.label_gather(graph.to_nodes, labels), (Y @ labels)[graph.shown])
    torch.testing.assert_close(ops.add_labels_(graph.to_nodes, x.clone(), labels), x + Y @ labels)


@pytest.mark.parametrize(("rows", "columns", "channels"), [(0, 3, 2), (1, 1, 1), (7, 5, 3), (5, 7, 3), (65, 63, 33)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_the_projection_of_entries_equals_the_dense_product(rows, columns, channels, density):
    X = torch.randn(rows, columns, dtype=torch.float64) * (torch.rand(rows, columns) < density)
    weight = torch.randn(channels, columns, dtype=torch.float64, requires_grad=True)
    features = SparseFeatures.from_dense(X)
    found = reference.neighbor_sum(features.rows.with_weight(features.rows.weight), weight.T)
    torch.testing.assert_close(found, X @ weight.T)
    torch.testing.assert_close(gradients([found], [weight]), gradients([X @ weight.T], [weight]))


def test_indices_are_narrow():
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
    assert (adjacency.rowptr.dtype, adjacency.col.dtype) == (torch.int32, torch.int32)


# compiled forms


def check_propagation(form, graph, channels, dtype, *, labels=True, update_labels=True, scaled=True, added=True):
    kernels, device = form
    x, fast_x = pair(graph.num_nodes, channels, dtype=dtype, device=device)
    rows, fast_rows = pair(graph.num_classes, channels, dtype=dtype, device=device)
    add, fast_add = pair(graph.num_nodes, channels, dtype=dtype, device=device)
    scales, fast_scales = random_scales(graph.num_nodes, device, given=scaled)
    plain = reference.propagate_messages(
        graph, x, rows if labels else None, add if added else None, scales, update_labels=update_labels
    )
    with using(kernels):
        fast = ops.propagate_messages(
            to(graph, device), fast_x, fast_rows if labels else None, fast_add if added else None, fast_scales,
            update_labels=update_labels,
        )  # fmt: skip
    assert_equal(fast, plain, dtype)
    outputs = [i for i in range(2) if plain[i] is not None]
    ours = gradients([fast[i] for i in outputs], [fast_x, fast_rows, fast_add])
    assert_equal(ours, gradients([plain[i] for i in outputs], [x, rows, add]), dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), FAST_SIZES)
def test_propagation(form, nodes, edges, channels, weighted, dtype):
    graph = with_labels(random_graph(nodes, edges, torch.float32, weighted=weighted))
    check_propagation(form, graph, channels, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("update_labels", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_propagation_with_and_without_each_part(form, labels, update_labels, scaled, added):
    graph = with_labels(random_graph(30, 60, torch.float32, weighted=False, directed=False))
    parts = {"labels": labels, "update_labels": update_labels, "scaled": scaled, "added": added}
    check_propagation(form, graph, 9, torch.float32, **parts)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_labels_that_nobody_shows_receive_zeros(form, dtype):
    kernels, device = form
    graph = with_labels(random_graph(30, 60, torch.float32, weighted=False), share=0.0)
    x, fast_x = pair(30, 24, dtype=dtype, device=device)
    none = (None, None, Scales())
    plain = reference.propagate_messages(graph, x, *none, update_labels=True)
    with using(kernels):
        fast = ops.propagate_messages(to(graph, device), fast_x, *none, update_labels=True)
    assert not fast[1].any()
    assert_equal(fast, plain, dtype)
    assert_equal(gradients(fast, [fast_x]), gradients(plain, [x]), dtype)


@pytest.mark.parametrize("form", FORMS)
@given(graph=label_graphs(label_edges=False), seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_propagation_on_random_label_graphs(form, graph, seed):
    torch.manual_seed(seed)
    check_propagation(form, graph, 3, torch.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_node_with_very_many_neighbors_and_a_class_with_very_many_nodes(form, weighted, monkeypatch):
    kernels, device = form
    graph = with_labels(hub(many(form, monkeypatch), torch.float32, weighted=weighted), classes=3, share=0.9)
    # means, or the sum over so many would lose the digits that are compared
    mean = 1 / graph.adjacency.degree
    x, fast_x = pair(graph.num_nodes, 5, dtype=torch.float32, device=device)
    plain = reference.propagate_messages(graph, x, None, None, Scales(target=mean, to_label=mean), update_labels=True)
    scales = Scales(target=mean.to(device), to_label=mean.to(device))
    with using(kernels):
        fast = ops.propagate_messages(to(graph, device), fast_x, None, None, scales, update_labels=True)
    assert_equal(fast[:1], plain[:1], torch.float32)
    torch.testing.assert_close(
        fast[1].cpu().double() / graph.num_nodes, plain[1] / graph.num_nodes, rtol=1e-4, atol=1e-5
    )
    assert_equal(gradients(fast[:1], [fast_x]), gradients(plain[:1], [x]), torch.float32)


def dense_labels(graph, x, rows):
    """`x + Y rows`."""
    Y = torch.zeros(graph.num_nodes, graph.num_classes, dtype=x.dtype).index_put((graph.shown, graph.y), x.new_ones(()))
    return x + Y @ rows


@pytest.mark.parametrize("form", FORMS)
def test_sums_and_gathers_of_labels(form):
    kernels, device = form
    graph = with_labels(random_graph(60, 10, torch.float32, weighted=False))
    x, fast_x = pair(60, 7, dtype=torch.float32, device=device)
    rows, fast_rows = pair(5, 7, dtype=torch.float32, device=device)
    moved = to(graph, device)
    with using(kernels):
        sums = ops.class_sum(moved.to_labels, fast_x)
        gathered = ops.label_gather(moved.to_nodes, fast_rows)
        added = ops.add_labels_(moved.to_nodes, fast_x.clone(), fast_rows)
    assert_equal([sums], [reference.neighbor_sum(graph.to_labels.classes, x)], torch.float32)
    pairs = [
        (gathered, reference.label_gather(graph.to_nodes, rows)),
        (added, dense_labels(graph, x, rows)),
    ]
    for fast, plain in pairs:
        assert_equal([fast], [plain], torch.float32)
        assert_equal(gradients([fast], [fast_x, fast_rows]), gradients([plain], [x, rows]), torch.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "columns", "channels"), [(0, 3, 2), (1, 1, 1), (7, 5, 3), (18, 33, 33)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_the_projection_of_entries(form, rows, columns, channels, density):
    kernels, device = form
    X = torch.randn(rows, columns) * (torch.rand(rows, columns) < density)
    weight, fast_weight = pair(channels, columns, dtype=torch.float32, device=device)
    features = SparseFeatures.from_dense(X.to(device))
    with using(kernels):
        fast = ops.project_entries(features.rows, features.rows.weight, fast_weight)
    assert_equal([fast], [X.double() @ weight.T], torch.float32)
    assert_equal(gradients([fast], [fast_weight]), gradients([X.double() @ weight.T], [weight]), torch.float32)
