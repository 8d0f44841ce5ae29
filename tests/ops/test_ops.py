"""Every operation equals its equation in dense matrices, values and gradients, at odd and empty sizes."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from legnn import ops
from legnn.graph import Adjacency
from legnn.nn.features import SparseFeatures
from legnn.ops import reference, sparse

TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 1e-4}, torch.float64: {"rtol": 1e-10, "atol": 1e-10}}


def random_graph(nodes: int, edges: int, dtype: torch.dtype, *, weighted: bool, directed: bool = True) -> Adjacency:
    generator = torch.Generator().manual_seed(nodes + edges)
    edge_index = torch.randint(0, max(nodes, 1), (2, edges if nodes else 0), generator=generator)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype) + 0.1 if weighted else None
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
        weight = None if weight is None else weight.repeat(2)
    return Adjacency.from_edge_index(edge_index, nodes, weight)


def hub(nodes: int, dtype: torch.dtype, *, weighted: bool) -> Adjacency:
    """One node that everybody sends to and hears from."""
    others = torch.arange(nodes)
    edge_index = torch.cat(
        [torch.stack([others, torch.zeros_like(others)]), torch.stack([torch.zeros_like(others), others])], 1
    )
    weight = torch.rand(edge_index.size(1), dtype=dtype) + 0.1 if weighted else None
    return Adjacency.from_edge_index(edge_index, nodes, weight)


def dense(adjacency: Adjacency, dtype: torch.dtype) -> torch.Tensor:
    weight = torch.ones(adjacency.num_edges) if adjacency.weight is None else adjacency.weight
    matrix = torch.zeros(adjacency.num_rows, adjacency.num_cols, dtype=dtype)
    return matrix.index_put((adjacency.row, adjacency.col), weight.to(dtype), accumulate=True)


def gradients(outputs, wrt):
    generator = torch.Generator().manual_seed(5)
    total = sum((out * torch.randn(out.shape, generator=generator, dtype=out.dtype)).sum() for out in outputs)
    return torch.autograd.grad(total, wrt, retain_graph=True)


SIZES = [(1, 0, 1), (1, 1, 1), (2, 5, 3), (63, 200, 60), (65, 1, 7), (200, 1000, 33)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), SIZES)
def test_neighbor_sum_equals_the_dense_product(nodes, edges, channels, directed, weighted, dtype):
    adjacency = random_graph(nodes, edges, dtype, weighted=weighted, directed=directed)
    x = torch.randn(nodes, channels, dtype=dtype, requires_grad=True)
    expected = dense(adjacency, dtype) @ x
    for form in (ops.neighbor_sum, reference.neighbor_sum):
        found = form(adjacency, x)
        torch.testing.assert_close(found, expected, **TOLERANCE[dtype])
        torch.testing.assert_close(gradients([found], [x]), gradients([expected], [x]), **TOLERANCE[dtype])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sparse_form_equals_the_reference_where_one_node_has_very_many_neighbors(weighted):
    adjacency = hub(5001, torch.float32, weighted=weighted)
    x = torch.randn(5001, 9, requires_grad=True)
    ours, plain = sparse.neighbor_sum(adjacency, x), reference.neighbor_sum(adjacency, x)
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(gradients([ours], [x]), gradients([plain], [x]), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("nodes", "edges", "channels"), [(0, 0, 4), (5, 0, 4), (5, 7, 0)])
def test_neighbor_sum_of_nothing_is_zero(nodes, edges, channels):
    adjacency = random_graph(nodes, edges, torch.float32, weighted=False)
    out = ops.neighbor_sum(adjacency, torch.randn(nodes, channels))
    assert out.shape == (nodes, channels)
    assert not out.any()


@pytest.mark.parametrize("kinds", [(torch.float32, torch.float64), (torch.float64, torch.float32)])
def test_weights_of_another_precision_are_taken_in_that_of_the_features(kinds):
    of_weights, of_features = kinds
    adjacency = random_graph(10, 40, of_weights, weighted=True)
    x = torch.randn(10, 3, dtype=of_features)
    torch.testing.assert_close(ops.neighbor_sum(adjacency, x), dense(adjacency, of_features) @ x)
    score = torch.randn(10, 1, dtype=of_features)
    assert ops.neighbor_attention(adjacency, x[:, None], score, None, 0.2)[0].dtype == of_features


def test_single_precision_takes_the_sparse_form(monkeypatch):
    called = []
    monkeypatch.setattr(sparse, "neighbor_sum", lambda adjacency, x: called.append(x.dtype) or x)
    adjacency = random_graph(10, 40, torch.float32, weighted=False)
    ops.neighbor_sum(adjacency, torch.randn(10, 3))
    ops.neighbor_sum(adjacency, torch.randn(10, 3, dtype=torch.float64))
    assert called == [torch.float32]


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
def test_neighbor_attention_equals_a_dense_softmax(nodes, edges, channels, weighted, look_at_target):
    dtype, heads = torch.float64, 3
    adjacency = random_graph(nodes, edges, dtype, weighted=weighted)
    values = torch.randn(nodes, heads, channels, dtype=dtype, requires_grad=True)
    source = torch.randn(nodes, heads, dtype=dtype, requires_grad=True)
    target = torch.randn(nodes, heads, dtype=dtype, requires_grad=True) if look_at_target else None
    out, log_denominator = ops.neighbor_attention(adjacency, values, source, target, 0.2)
    expected, expected_log = dense_attention(dense(adjacency, dtype), values, source, target, 0.2)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(log_denominator, expected_log)
    reached = adjacency.degree > 0
    assert torch.equal(log_denominator.isneginf().all(1), ~reached)
    assert not out[~reached].any()
    wrt = [tensor for tensor in (values, source, target) if tensor is not None]
    ours = gradients([out, log_denominator[reached]], wrt)
    theirs = gradients([expected, expected_log[reached]], wrt)
    if reached.any():
        torch.testing.assert_close(ours, theirs)
    assert all(torch.isfinite(gradient).all() for gradient in ours)


def test_attention_of_very_large_scores_does_not_overflow():
    adjacency = hub(50, torch.float32, weighted=False)
    values = torch.randn(50, 1, 4)
    out, log_denominator = ops.neighbor_attention(adjacency, values, torch.full((50, 1), 1e4), None, 0.2)
    assert torch.isfinite(out).all()
    assert torch.isfinite(log_denominator).all()
    torch.testing.assert_close(out[0, 0], (dense(adjacency, torch.float32) @ values[:, 0])[0] / adjacency.degree[0])


@given(st.lists(st.integers(0, 4), max_size=12))
@settings(max_examples=30, deadline=None)
def test_class_sums_and_gathers_are_products_with_the_one_hot_matrix(labels):
    y = torch.tensor(labels, dtype=torch.long)
    Y = F.one_hot(y, 5).double()
    x = torch.randn(len(labels), 3, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(ops.class_sum(x, y, 5), Y.T @ x)
    torch.testing.assert_close(ops.label_gather(rows, y), Y @ rows)
    torch.testing.assert_close(gradients([ops.class_sum(x, y, 5)], [x]), gradients([Y.T @ x], [x]))
    torch.testing.assert_close(gradients([ops.label_gather(rows, y)], [rows]), gradients([Y @ rows], [rows]))


@given(st.lists(st.integers(0, 4), max_size=12))
@settings(max_examples=30, deadline=None)
def test_class_attention_equals_a_dense_softmax_and_a_class_with_no_node_gets_zero(labels):
    y = torch.tensor(labels, dtype=torch.long)
    values = torch.randn(len(labels), 2, 3, dtype=torch.float64, requires_grad=True)
    score = torch.randn(len(labels), 2, dtype=torch.float64, requires_grad=True)
    out, log_denominator = ops.class_attention(values, score, y, 5)
    for c in range(5):
        mine = y == c
        if not mine.any():
            assert not out[c].any()
            assert log_denominator[c].isneginf().all()
            continue
        torch.testing.assert_close(out[c], (torch.softmax(score[mine], 0)[..., None] * values[mine]).sum(0))
        torch.testing.assert_close(log_denominator[c], torch.logsumexp(score[mine], 0))
    if labels:
        there = F.one_hot(y, 5).sum(0) > 0
        dense_score = torch.where(F.one_hot(y, 5).bool().T[..., None], score[None], -torch.inf)[there]
        expected = torch.einsum("cnh,nhd->chd", torch.softmax(dense_score, 1), values)
        torch.testing.assert_close(gradients([out[there]], [values, score]), gradients([expected], [values, score]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns", "channels"), [(0, 3, 2), (1, 1, 1), (7, 5, 3), (5, 7, 3), (65, 63, 33)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_the_projection_of_entries_equals_the_dense_product(rows, columns, channels, density, dtype):
    X = torch.randn(rows, columns, dtype=dtype) * (torch.rand(rows, columns) < density)
    weight = torch.randn(channels, columns, dtype=dtype, requires_grad=True)
    features = SparseFeatures.from_dense(X)
    expected = X @ weight.T
    for form in (ops.project_entries, reference.project_entries):
        found = form(features.rows, features.rows.weight, features.order, weight)
        torch.testing.assert_close(found, expected, **TOLERANCE[dtype])
        torch.testing.assert_close(gradients([found], [weight]), gradients([expected], [weight]), **TOLERANCE[dtype])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("weighted", [False, True])
def test_neighbor_sum_on_the_gpu_equals_that_on_the_cpu(weighted):
    adjacency = random_graph(200, 2000, torch.float32, weighted=weighted)
    x = torch.randn(200, 33)
    found = ops.neighbor_sum(adjacency.to("cuda"), x.cuda()).cpu()
    torch.testing.assert_close(found, ops.neighbor_sum(adjacency, x), rtol=1e-4, atol=1e-4)
