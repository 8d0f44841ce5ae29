"""Attention: plain PyTorch equals a dense softmax, and the compiled forms equal plain PyTorch, values and gradients."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS, assert_equal, many, pair, random_scales, to, using
from tests.ops.graphs import SIZES, dense, gradients, hub, one_hot, random_graph, with_labels
from tests.strategies import label_graphs

from legnn import ops
from legnn.graph import LabelGraph
from legnn.ops import AttentionConfig, Scales
from legnn.ops.attention import reference
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.row_chunks import RowChunks


def dense_attention(A, values, source, target, slope):
    """By the equation: `A_ij exp β_ij / Σ_k A_ik exp β_ik` and the logarithm of the denominator."""
    score = source[None] if target is None else source[None] + target[:, None]
    exponent = A[..., None] * F.leaky_relu(score, slope).expand(*A.shape, source.size(1)).exp()
    total = exponent.sum(1)
    safe = torch.where(total > 0, total, torch.ones_like(total))
    return torch.einsum("ijh,jhd->ihd", exponent / safe[:, None], values), torch.where(
        total > 0, safe.log(), -torch.inf
    )


@pytest.mark.parametrize("use_target_score", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "channels"), SIZES[:5])
def test_attention_equals_a_dense_softmax(nodes, edges, channels, weighted, use_target_score):
    dtype, heads = torch.float64, 3
    adjacency = random_graph(nodes, edges, dtype, weighted=weighted)
    values = torch.randn(nodes, heads, channels, dtype=dtype, requires_grad=True)
    source = torch.randn(nodes, heads, dtype=dtype, requires_grad=True)
    target = torch.randn(nodes, heads, dtype=dtype, requires_grad=True) if use_target_score else None
    out, log_denominator = reference.neighbor_attention(adjacency, values, source, target, 0.2)
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
@settings(max_examples=20, deadline=None)
def test_labels_attend_over_the_nodes_that_show_them(graph, use_target_score):
    channels, heads = 6, 2
    nodes, classes = graph.num_nodes, graph.num_classes
    x = torch.randn(nodes, channels + 2 * heads, dtype=torch.float64)
    label_target = torch.randn(classes, heads, dtype=torch.float64) if use_target_score else None
    scale = torch.rand(nodes, dtype=torch.float64)
    config = AttentionConfig(channels, heads, True, 0.2)
    output = reference.attend(graph, x, None, label_target, None, Scales(to_label=scale), config, update_labels=True)
    by_head = (scale[:, None] * x[:, :channels]).unflatten(1, (heads, -1))
    source = x[:, channels : channels + heads]
    expected, expected_log = dense_attention(one_hot(graph).T, by_head, source, label_target, 0.2)
    torch.testing.assert_close(output.labels, expected.flatten(1))
    torch.testing.assert_close(output.label_log_denominator, expected_log)


def test_attention_of_very_large_scores_does_not_overflow():
    adjacency = hub(50, torch.float32, weighted=False)
    values = torch.randn(50, 1, 4)
    out, log_denominator = reference.neighbor_attention(adjacency, values, torch.full((50, 1), 1e4), None, 0.2)
    assert torch.isfinite(out).all()
    assert torch.isfinite(log_denominator).all()
    torch.testing.assert_close(out[0, 0], (dense(adjacency, torch.float32) @ values[:, 0])[0] / adjacency.degree[0])


# compiled forms


def check_attention(
    form, graph, width, dtype, *, use_target_score=True, labels=True, update_labels=True, scaled=True, added=True,
    scaled_scores="none",
):  # fmt: skip
    kernels, device = form
    channels = 3 * width
    x, fast_x = pair(graph.num_nodes, -(-channels // 8) * 8 + 8, dtype=dtype, device=device)
    rows, fast_rows = pair(graph.num_classes, channels, dtype=dtype, device=device)
    target, fast_target = pair(graph.num_classes, 3, dtype=dtype, device=device)
    add, fast_add = pair(graph.num_nodes, channels, dtype=dtype, device=device)
    scales, fast_scales = random_scales(graph.num_nodes, device, given=scaled)
    if scaled_scores != "none":
        factors, both = torch.rand(graph.num_nodes), scaled_scores == "of all relations"
        scales = scales._replace(score=factors, scales_label_scores=both)
        fast_scales = fast_scales._replace(score=factors.to(device), scales_label_scores=both)
    config = AttentionConfig(channels, 3, use_target_score, 0.2)
    plain = reference.attend(
        graph, x, rows if labels else None, target if use_target_score else None, add if added else None, scales,
        config, update_labels=update_labels,
    )  # fmt: skip
    with using(kernels):
        fast = ops.attend(
            to(graph, device), fast_x, fast_rows if labels else None, fast_target if use_target_score else None,
            fast_add if added else None, fast_scales, config, update_labels=update_labels,
        )  # fmt: skip
    assert_equal(fast, plain, dtype)
    reached = graph.adjacency.degree > 0
    shown = graph.label_count > 0
    wanted = [(0, slice(None)), (1, reached)] + ([(2, slice(None)), (3, shown)] if update_labels else [])
    ours = gradients(
        [fast[i][part.to(device) if i % 2 else part] for i, part in wanted],
        [fast_x, fast_rows, fast_target, fast_add],
    )
    theirs = gradients([plain[i][part] for i, part in wanted], [x, rows, target, add])
    assert_equal(ours, theirs, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("nodes", "edges", "width"), [(1, 0, 1), (2, 5, 3), (9, 24, 20), (5, 14, 43)])
def test_attention(form, nodes, edges, width, weighted, dtype):
    graph = with_labels(random_graph(nodes, edges, torch.float32, weighted=weighted))
    check_attention(form, graph, width, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_over_rows_and_heads_that_begin_anywhere(form, dtype):
    width = 7
    check_attention(form, with_labels(random_graph(11, 33, torch.float32, weighted=False)), width, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("use_target_score", [False, True])
@pytest.mark.parametrize("scaled_scores", ["of nodes", "of all relations"])
def test_attention_with_scaled_scores(form, scaled_scores, use_target_score, dtype):
    graph = with_labels(random_graph(7, 16, torch.float32, weighted=True))
    check_attention(form, graph, 5, dtype, use_target_score=use_target_score, scaled_scores=scaled_scores)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use_target_score", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("update_labels", [False, True])
@pytest.mark.parametrize(("scaled", "added"), [(False, True), (True, False)])
def test_attention_with_and_without_each_part(form, use_target_score, labels, update_labels, scaled, added):
    graph = with_labels(random_graph(7, 14, torch.float32, weighted=False, directed=False))
    parts = {"labels": labels, "update_labels": update_labels, "scaled": scaled, "added": added}
    check_attention(form, graph, 5, torch.float32, use_target_score=use_target_score, **parts)


@pytest.mark.parametrize("form", FORMS)
def test_attention_over_very_many_neighbors(form, monkeypatch):
    graph = with_labels(hub(many(form, monkeypatch), torch.float32, weighted=False), classes=3, share=0.9)
    check_attention(form, graph, 2, torch.float32, scaled=False)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_that_is_among_the_long_ones_and_is_not_counts_once(form, monkeypatch):
    def all_rows(adjacency):
        rows = torch.arange(adjacency.num_rows, dtype=adjacency.rowptr.dtype, device=adjacency.rowptr.device)
        return RowChunks.split(adjacency.rowptr, rows, 4, adjacency.num_edges // 4 + adjacency.num_rows)

    # as in a sample, of whose rows it is not known which are long
    monkeypatch.setattr(Adjacency, "row_chunks", property(all_rows))
    check_attention(form, with_labels(random_graph(7, 40, torch.float32, weighted=False)), 5, torch.float32)


@pytest.mark.parametrize("form", FORMS)
def test_attention_of_very_large_scores_does_not_overflow_in_any_form(form):
    kernels, device = form
    graph = LabelGraph.without_labels(hub(50, torch.float32, weighted=False), 2)
    x = torch.cat([torch.randn(50, 4), torch.full((50, 1), 1e4)], 1).to(device)
    config = AttentionConfig(4, 1, False, 0.2)
    with using(kernels):
        output = ops.attend(to(graph, device), x, None, None, None, Scales(), config, update_labels=False)
    assert torch.isfinite(output.nodes).all()
    assert torch.isfinite(output.log_denominator).all()


@pytest.mark.parametrize("form", FORMS)
@given(graph=label_graphs(label_edges=False), seed=st.integers(0, 99))
@settings(max_examples=5, deadline=None)
def test_attention_on_random_label_graphs(form, graph, seed):
    torch.manual_seed(seed)
    check_attention(form, graph, 2, torch.float32)
