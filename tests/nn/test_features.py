"""Features that are mostly zeros are kept as entries, and the model cannot tell."""

import pytest
import torch
from tests.named import model_settings

from legnn.graph import Adjacency, LabelGraph
from legnn.nn import LEGNN
from legnn.nn.features import SparseFeatures, to_sparse_if_faster


def counts(nodes: int = 30, words: int = 40, density: float = 0.05) -> torch.Tensor:
    return (torch.rand(nodes, words, generator=torch.Generator().manual_seed(0)) < density).float() * 2


def test_mostly_zeros_become_entries_and_others_stay_as_they_are():
    assert isinstance(to_sparse_if_faster(counts()), SparseFeatures)
    dense = torch.randn(30, 40)
    assert to_sparse_if_faster(dense) is dense
    assert isinstance(to_sparse_if_faster(torch.zeros(3, 4)), SparseFeatures)


def test_nothing_is_dropped_outside_training_and_about_the_rate_in_it():
    x = counts(300, 200)
    features = SparseFeatures.from_dense(x)
    weight = torch.eye(200)
    torch.testing.assert_close(features.project(weight, 0.5, training=False), x)
    dropped = features.project(weight, 0.5, training=True)
    assert set(dropped.unique().tolist()) == {0.0, 4.0}, "an entry is dropped or doubled, and a zero stays zero"
    assert 0.4 < float((dropped[x > 0] == 0).float().mean()) < 0.6


@pytest.mark.parametrize("label_features", ["one-hot", "class-mean"])
@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
def test_a_model_gives_the_same_from_entries_as_from_rows(labels, label_features):
    settings = model_settings(
        labels=labels, hidden=8, layers=2, feature_scale="row", label_features=label_features, label_at_input=True
    )
    model = LEGNN(40, 3, settings)
    shown = torch.arange(0, 30, 2)
    graph = LabelGraph(Adjacency.from_edge_index(torch.randint(0, 30, (2, 90)), 30), shown, shown % 3, 3)
    sparse, dense = model.prepare(counts()), model.scale(counts())
    assert isinstance(sparse, SparseFeatures)
    ours, theirs = model(sparse, graph), model(dense, graph)
    torch.testing.assert_close(ours, theirs)
    wrt = [model.encoder.project.weight]
    torch.testing.assert_close(torch.autograd.grad(ours.sum(), wrt), torch.autograd.grad(theirs.sum(), wrt))
