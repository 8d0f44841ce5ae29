"""Several node types: each has a projection and statistics of its own, whatever the order of the nodes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.named import model_settings

from legnn.graph import Adjacency, LabelGraph
from legnn.nn import LEGNN
from legnn.nn.features import SparseFeatures, TypedFeatures, scatter_by_type
from legnn.nn.scaling import FeatureScale

F, HIDDEN, TYPES = 4, 8, 3


def model(scale: str = "standard", labels: str = "vanilla", **options) -> LEGNN:
    torch.manual_seed(0)
    chosen = {
        "hidden": HIDDEN,
        "layers": 2,
        "labels": labels,
        "feature_scale": scale,
        "dropout": 0.0,
        "input_dropout": 0.0,
    }
    return LEGNN(F, 3, model_settings(**{**chosen, **options}), num_types=TYPES)


def no_labels(nodes: int) -> LabelGraph:
    adjacency = Adjacency.from_edge_index(torch.arange(nodes).repeat(2, 1), nodes)
    return LabelGraph.without_labels(adjacency, 3)


types = st.lists(st.integers(0, TYPES - 1), min_size=1, max_size=12).map(torch.tensor)


@pytest.mark.parametrize("share", [1.0, 0.1], ids=["dense", "sparse"])
@given(node_type=types)
@settings(max_examples=12, deadline=None)
def test_every_type_has_a_matrix_of_its_own(share, node_type):
    net, n = model("none").double(), len(node_type)
    x = torch.randn(n, F, dtype=torch.float64) * (torch.rand(n, F) < share)
    found, _ = net.encoder(net.prepare(x, node_type=node_type), no_labels(n))
    matrices = net.encoder.project.weight.split(F, dim=1)
    expected = torch.stack([matrices[kind] @ row for row, kind in zip(x, node_type.tolist(), strict=True)])
    torch.testing.assert_close(found, expected)


@given(node_type=types)
@settings(max_examples=12, deadline=None)
def test_features_without_zeros_are_those_with_them(node_type):
    x = torch.randn(len(node_type), F)
    typed = TypedFeatures.from_rows(x, node_type, TYPES)
    weight = torch.randn(HIDDEN, TYPES * F, requires_grad=True)
    found = typed.project(weight, 0.0, False)
    expected = scatter_by_type(x, node_type, TYPES) @ weight.T
    torch.testing.assert_close(found, expected)
    assert torch.equal(typed.dense, scatter_by_type(x, node_type, TYPES))
    seed = torch.randn_like(found)
    (mine,) = torch.autograd.grad(found, weight, seed, retain_graph=True)
    (theirs,) = torch.autograd.grad(expected, weight, seed)
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("scale", ["none", "row", "entries", "standard"])
def test_some_rows_have_the_features_they_have_among_all(scale):
    net, x, node_type = model(scale), torch.rand(20, F), torch.arange(20) % TYPES
    net.fit_scaler(x, node_type)
    rows = torch.tensor([7, 3, 3, 11])
    torch.testing.assert_close(
        net.prepare(x[rows], node_type=node_type[rows]).dense, net.prepare(x, node_type=node_type).dense[rows]
    )


@pytest.mark.parametrize("kind", ["entries", "standard"])
def test_every_type_has_statistics_of_its_own(kind):
    x, node_type = torch.rand(30, F) * 5, torch.arange(30) % 2  # nobody is of the third type
    together = FeatureScale(kind, F, TYPES)
    together.fit(x, node_type)
    for one in (0, 1):
        alone = FeatureScale(kind, F)
        alone.fit(x[node_type == one])
        torch.testing.assert_close(together(x, node_type)[node_type == one], alone(x[node_type == one]))
    assert torch.isfinite(together(x, torch.full((30,), 2))).all()


def test_columns_a_type_does_not_have_stay_zero():
    x, node_type = torch.rand(30, F), torch.arange(30) % 2
    x[node_type == 0, 2:] = 0
    scale = FeatureScale("standard", F, 2)
    scale.fit(x, node_type)
    assert not scale(x, node_type)[node_type == 0, 2:].any()


def test_with_one_type_the_statistics_are_vectors_as_before():
    assert FeatureScale("standard", F).mean.shape == (F,)
    assert FeatureScale("entries", F).deviation.shape == ()
    assert FeatureScale("standard", F, 3).mean.shape == (3, F)


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_types_that_share_a_projection_have_one_matrix_and_statistics_of_their_own(scale):
    net, x, node_type = model(scale, shared_projection=True), torch.rand(20, F), torch.arange(20) % TYPES
    net.fit_scaler(x, node_type)
    found, _ = net.encoder(net.prepare(x, node_type=node_type), no_labels(20))
    assert net.encoder.project.weight.shape == (HIDDEN, F)
    torch.testing.assert_close(found, net.scale(x, node_type) @ net.encoder.project.weight.T)
    torch.testing.assert_close(net.prepare_rows(x, node_type=node_type), net.prepare(x, node_type=node_type))
    if scale == "standard":
        for kind in range(TYPES):
            mine = net.prepare(x, node_type=node_type)[node_type == kind]
            torch.testing.assert_close(mine.mean(0), torch.zeros(F), atol=1e-6, rtol=0)


def test_word_counts_of_one_type_are_sparse_beside_dense_features_of_another():
    x = torch.cat([(torch.rand(20, F) < 0.1).float(), torch.rand(20, F)])
    typed = TypedFeatures.from_rows(x, torch.arange(40) // 20, 2)
    assert [isinstance(part, SparseFeatures) for _, part in typed.parts] == [True, False]
    assert typed.nodes.order is None


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("label_features", ["one-hot", "class-mean"])
def test_every_label_usage_takes_several_types(labels, label_features):
    net = model(labels=labels, label_features=label_features, input_dropout=0.5).train()
    node_type = torch.tensor([2, 0, 1, 1, 0, 2, 2, 0])
    graph = no_labels(8).show(torch.tensor([0, 3]), torch.tensor([1, 2]))
    logits = net(net.prepare(torch.rand(8, F), node_type=node_type), graph)
    logits.sum().backward()
    assert logits.shape == (8, 3)
    assert torch.isfinite(net.encoder.project.weight.grad).all()
