"""Label propagation and Correct & Smooth equal PyG's, without a tensor of edges times classes."""

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data
from tests.named import arguments
from tests.strategies import label_graphs
from torch_geometric.nn import CorrectAndSmooth as PyGCorrectAndSmooth
from torch_geometric.nn import LabelPropagation as PyGLabelPropagation
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import legnn
from legnn.baselines import CorrectAndSmooth, LabelPropagation
from legnn.baselines.label_propagation import diffuse, normalize_rows, shown_one_hot
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph

graphs = label_graphs(max_nodes=10, label_edges=False)
steps, alphas = st.integers(1, 6), st.floats(0.05, 0.95)


def edges(graph: LabelGraph) -> tuple[torch.Tensor, torch.Tensor]:
    """Edges and the weights of `D^{-1/2} A D^{-1/2}` in PyG's words."""
    weight = None if graph.adjacency.weight is None else graph.adjacency.weight.float()
    return gcn_norm(graph.adjacency.edge_index, weight, graph.num_nodes, add_self_loops=False)


@given(graph=graphs, steps=steps, alpha=alphas)
@settings(max_examples=20, deadline=None)
def test_label_propagation_equals_pygs(graph, steps, alpha):
    y = shown_one_hot(graph)
    edge_index, weight = edges(graph)
    expected = PyGLabelPropagation(steps, alpha)(y, edge_index, edge_weight=weight)
    torch.testing.assert_close(diffuse(graph, y, steps, alpha), expected, rtol=1e-4, atol=1e-6)
    found = LabelPropagation(steps, alpha)(None, graph).softmax(-1)
    torch.testing.assert_close(found, normalize_rows(expected), rtol=1e-4, atol=1e-5)


@given(graph=graphs, steps=steps, alpha=alphas, seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_correct_and_smooth_equals_pygs(graph, steps, alpha, seed):
    generator = torch.Generator().manual_seed(seed)
    p = torch.randn(graph.num_nodes, graph.num_classes, generator=generator).softmax(-1)
    ours, theirs = CorrectAndSmooth(steps, alpha), PyGCorrectAndSmooth(steps, alpha, steps, alpha)
    edge_index, weight = edges(graph)
    if graph.shown.numel() and graph.num_classes > 1:
        expected = theirs.correct(p, graph.y, graph.shown, edge_index, weight)
        torch.testing.assert_close(ours.correct(p, graph), expected, rtol=1e-4, atol=1e-5)
    expected = theirs.smooth(p, graph.y, graph.shown, edge_index, weight)
    torch.testing.assert_close(ours.smooth(p, graph), expected, rtol=1e-4, atol=1e-5)
    found = ours(p, graph)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found.sum(1), torch.ones(graph.num_nodes))


def test_a_node_that_no_label_reaches_is_uniform():
    assert normalize_rows(torch.tensor([[0.0, 0.0], [1.0, 3.0]])).tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_a_node_that_no_label_reaches_has_no_class():
    pair = torch.tensor([[0, 1], [1, 0]])
    bare = LabelGraph.without_labels(Adjacency.from_edge_index(pair, 3), 2)
    graph = bare.show(torch.tensor([0]), torch.tensor([1]))
    assert LabelPropagation(3, 0.5).classes(graph).tolist() == [1, 1, -1]
    assert LabelPropagation(3, 0.5).classes(bare).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("width", [1, 3, 8])
def test_diffusion_keeps_the_columns(width):
    ring = torch.stack([torch.arange(5), (torch.arange(5) + 1) % 5])
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(ring, 5), width)
    x = torch.rand(5, width)
    # every node has one neighbor, so a step with α near 1 moves the rows around the ring
    torch.testing.assert_close(diffuse(graph, x, 1, 1 - 1e-7), x.roll(1, 0), rtol=1e-4, atol=1e-5)


def test_a_finished_run_is_smoothed_as_if_it_had_been_trained_so(tmp_path):
    data = small_data(60)
    options = {"architecture": "mlp", "epochs": 5, "hidden": 8}
    plain = legnn.train(data, **arguments(**options), out=tmp_path / "plain")
    trained = legnn.train(
        data, **arguments(**options, postprocess="correct_and_smooth", **{"label_propagation.alpha": 0.8})
    )
    smooth = legnn.Run.open(tmp_path / "plain").with_postprocess("correct_and_smooth", alpha=0.8)
    pd.testing.assert_frame_equal(smooth.predict(data), trained.predictions)
    assert not smooth.predict(data).equals(plain.predictions)
    with pytest.raises(InputError, match="postprocess must be one of none, correct_and_smooth, got 'smooth'"):
        plain.with_postprocess("smooth")
