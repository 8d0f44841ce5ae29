"""Matrices that are filled up with columns of zeros, as on a GPU, give the same model to the last gradient."""

import pytest
import torch
from tests.ops.graphs import random_graph, with_labels

from legnn.nn import LEGNN, ModelSettings
from legnn.ops.runtime import padding

BACKBONES = ["gcn", "sage", "gat", "gatv2"]


def outcome(settings: ModelSettings, x: torch.Tensor, graph, padded_width: int, monkeypatch):
    monkeypatch.setitem(padding.COLUMN_MULTIPLE, "cpu", padded_width)
    torch.manual_seed(0)
    model = LEGNN(x.size(1), graph.num_classes, settings).train()
    features = model.inputs(x)
    logits = model(features, graph)
    logits.square().sum().backward()
    model.eval()
    with torch.no_grad():
        after, embedded = model(features, graph), model.embed(features, graph)
    return logits, after, embedded, {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize(("norm", "residual"), [("batch", "linear"), ("layer", "identity"), ("none", "none")])
def test_zeros_beyond_the_channels_change_nothing(backbone, labels, norm, residual, monkeypatch):
    check(monkeypatch, backbone=backbone, labels=labels, norm=norm, residual=residual)


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
@pytest.mark.parametrize("options", [{"normalize": "joint"}, {"label_features": "class-mean"}, {"scale": "entries"}])
def test_nor_do_they_in_other_settings(backbone, options, monkeypatch):
    check(monkeypatch, backbone=backbone, labels="enhanced", norm="batch", residual="linear", **options)


def check(monkeypatch, **options):
    graph = with_labels(random_graph(40, 150, torch.float32, weighted=False, directed=False))
    x = torch.randn(40, 11)
    if options.get("scale") == "entries":
        x = x * (torch.rand(40, 11) < 0.1)
    settings = ModelSettings(
        hidden=15, layers=3, heads=3, dropout=0.4, input_dropout=0.1, label_at_input=True, **options
    )
    plain, wide = (outcome(settings, x, graph, padded_width, monkeypatch) for padded_width in (1, 8))
    assert wide[0].shape == plain[0].shape
    assert wide[2].nodes.shape == plain[2].nodes.shape
    tolerance = {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(wide[:2], plain[:2], **tolerance)
    torch.testing.assert_close(tuple(wide[2]), tuple(plain[2]), **tolerance)
    for name, gradient in plain[3].items():
        if gradient is None:
            assert wide[3][name] is None
            continue
        size = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(wide[3][name] / size, gradient / size, **tolerance)


@pytest.mark.parametrize("labels", ["concat", "addition", "enhanced"])
def test_double_precision_has_no_zeros_beyond_the_channels_and_the_same_logits(labels, monkeypatch):
    monkeypatch.setitem(padding.COLUMN_MULTIPLE, "cpu", 8)
    graph, x = with_labels(random_graph(40, 150, torch.float32, weighted=False, directed=False)), torch.randn(40, 11)
    torch.manual_seed(0)
    model = LEGNN(11, graph.num_classes, ModelSettings(hidden=15, labels=labels, label_at_input=True)).eval()
    with torch.no_grad():
        single, double = (model(model.inputs(x, dtype), graph) for dtype in (torch.float32, torch.float64))
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, rtol=1e-3, atol=1e-4)
