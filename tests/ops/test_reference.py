"""The plain form of every operation equals its equation in dense matrices, values and gradients."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.graphs import SIZES, dense, gradients, hub, random_graph, with_labels
from tests.strategies import label_graphs

from legnn.graph import Adjacency, LabelGraph
from legnn.nn.features import SparseFeatures
from legnn.ops import AttentionConfig, Scales, reference


def one_hot(graph: LabelGraph) -> torch.Tensor:
    Y = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    Y[graph.shown, graph.y] = 1
    return Y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), [*SIZES, (5, 0, 4), (5, 7, 0), (0, 0, 4)])
def test_propagation_is_the_scaled_product_with_the_label_graph(nodes, edges, channels, directed, weighted):
    graph = with_labels(random_graph(nodes, edges, torch.float64, weighted=weighted, directed=directed))
    x = torch.randn(nodes, channels, dtype=torch.float64, requires_grad=True)
    labels = torch.randn(5, channels, dtype=torch.float64, requires_grad=True)
    scales = Scales(*torch.rand(4, nodes, dtype=torch.float64))
    A, Y = dense(graph.adjacency, torch.float64), one_hot(graph)
    s, t, own, c = (scale[:, None] for scale in (scales.source, scales.target, scales.label, scales.classes))
    add = torch.randn(nodes, channels, dtype=torch.float64, requires_grad=True)
    expected = t * (A @ (s * x)) + own * (Y @ labels) + add, Y.T @ (c * x)
    found = reference.propagate(graph, x, labels, add, scales, classes=True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found, [x, labels, add]), gradients(expected, [x, labels, add]))


def dense_attention(A, values, source, target, slope):
    """By the equation: `A_ij exp β_ij / Σ_k A_ik exp β_ik` and the logarithm of the denominator."""
    score = source[None] if target is None else source[None] + target[:, None]
    exponent = A[..., None] * F.leaky_relu(score, slope).expand(*A.shape, source.size(1)).exp()
    total = exponent.sum(1)
    safe = torch.where(total > 0, total, torch.ones_like(total))
    return torch.einsum("ijh,jhd->ihd", exponent / safe[:, None], values), torch.where(
        total > 0, safe.log(), -torch.inf
    )


@pytest.mark.parametrize("look_at_target", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), SIZES[:5])
def test_attention_equals_a_dense_softmax(nodes, edges, channels, weighted, look_at_target):
    dtype, heads = torch.float64, 3
    adjacency = random_graph(nodes, edges, dtype, weighted=weighted)
    values = torch.randn(nodes, heads, channels, dtype=dtype, requires_grad=True)
    source = torch.randn(nodes, heads, dtype=dtype, requires_grad=True)
    target = torch.randn(nodes, heads, dtype=dtype, requires_grad=True) if look_at_target else None
    out, log_denominator = reference.attention(adjacency, values, source, target, 0.2)
    expected, expected_log = dense_attention(dense(adjacency, dtype), values, source, target, 0.2)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(log_denominator, expected_log)
    reached = adjacency.degree > 0
    assert torch.equal(log_denominator.isneginf().all(1), ~reached)
    assert not out[~reached].any()
    wrt = [tensor for tensor in (values, source, target) if tensor is not None]
    ours = gradients([out, log_denominator[reached]], wrt)
    theirs = gradients([expected, expected_log[reached]], wrt)
    torch.testing.assert_close(ours, theirs)
    assert all(torch.isfinite(gradient).all() for gradient in ours)


@given(label_graphs(label_edges=False), st.booleans())
@settings(max_examples=40, deadline=None)
def test_labels_attend_over_the_nodes_that_show_them(graph, looks):
    values, heads = 6, 2
    nodes, classes = graph.num_nodes, graph.num_classes
    sent = torch.randn(nodes, values + 2 * heads, dtype=torch.float64)
    label_target = torch.randn(classes, heads, dtype=torch.float64) if looks else None
    scale = torch.rand(nodes, dtype=torch.float64)
    attended = reference.attend(
        graph,
        sent,
        None,
        label_target,
        None,
        Scales(classes=scale),
        AttentionConfig(values, heads, True, 0.2),
        classes=True,
    )
    by_head = (scale[:, None] * sent[:, :values]).unflatten(1, (heads, -1))
    expected, expected_log = dense_attention(
        one_hot(graph).T, by_head, sent[:, values : values + heads], label_target, 0.2
    )
    torch.testing.assert_close(attended.labels, expected.flatten(1))
    torch.testing.assert_close(attended.label_log_denominator, expected_log)


def test_attention_of_very_large_scores_does_not_overflow():
    adjacency = hub(50, torch.float32, weighted=False)
    values = torch.randn(50, 1, 4)
    out, log_denominator = reference.attention(adjacency, values, torch.full((50, 1), 1e4), None, 0.2)
    assert torch.isfinite(out).all()
    assert torch.isfinite(log_denominator).all()
    torch.testing.assert_close(out[0, 0], (dense(adjacency, torch.float32) @ values[:, 0])[0] / adjacency.degree[0])


@given(label_graphs(label_edges=False))
@settings(max_examples=40, deadline=None)
def test_class_sums_and_gathers_are_products_with_the_one_hot_matrix(graph):
    Y = one_hot(graph)
    x = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    labels = torch.randn(graph.num_classes, 3, dtype=torch.float64)
    torch.testing.assert_close(reference.class_sum(graph.to_labels, x), Y.T @ x)
    torch.testing.assert_close(reference.label_gather(graph, labels), (Y @ labels)[graph.shown])
    torch.testing.assert_close(reference.add_labels_(graph.to_nodes, x.clone(), labels), x + Y @ labels)


@pytest.mark.parametrize(("rows", "columns", "channels"), [(0, 3, 2), (1, 1, 1), (7, 5, 3), (5, 7, 3), (65, 63, 33)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_the_projection_of_entries_equals_the_dense_product(rows, columns, channels, density):
    X = torch.randn(rows, columns, dtype=torch.float64) * (torch.rand(rows, columns) < density)
    weight = torch.randn(channels, columns, dtype=torch.float64, requires_grad=True)
    features = SparseFeatures.from_dense(X)
    found = reference.project_entries(features.rows, features.rows.weight, weight)
    torch.testing.assert_close(found, X @ weight.T)
    torch.testing.assert_close(gradients([found], [weight]), gradients([X @ weight.T], [weight]))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_dropout_keeps_what_it_should_and_no_seed_is_like_another(rate):
    seeds = [torch.tensor(words) for words in ([0, 0], [1, 0], [0, 1], [2**32 - 1, 12345])]
    masks = [reference.kept(400, 300, rate, seed) for seed in seeds]
    for mask in masks:
        assert abs(float(mask.double().mean()) - (1 - rate)) < 0.005
        # neither a row nor a column is favored: 6 standard deviations for each of them
        for axis, size in ((0, 400), (1, 300)):
            spread = 6 * (rate * (1 - rate) / size) ** 0.5
            assert float((mask.double().mean(axis) - (1 - rate)).abs().max()) <= spread
    if rate == 0.5:
        for one, mask in enumerate(masks):
            for other in masks[:one]:
                assert abs(float((mask == other).double().mean()) - 0.5) < 0.01
            # nor do neighbors in a row or in a column decide together
            assert abs(float((mask[:, 1:] == mask[:, :-1]).double().mean()) - 0.5) < 0.01
            assert abs(float((mask[1:] == mask[:-1]).double().mean()) - 0.5) < 0.01


def test_dropout_keeps_the_expectation():
    x = torch.rand(200, 300)
    out = reference.dropped(x, 0.25, torch.tensor([7, 9]))
    kept = out != 0
    torch.testing.assert_close(out[kept], x[kept] / 0.75)


def test_indices_are_narrow():
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
    assert (adjacency.rowptr.dtype, adjacency.col.dtype) == (torch.int32, torch.int32)
