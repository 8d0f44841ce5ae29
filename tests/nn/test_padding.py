"""A model whose width is no multiple of eight stores channels of zeros, which change nothing and stay zero."""

from dataclasses import replace

import pytest
import torch
from tests.backbones import PADDED
from tests.named import model_settings
from tests.ops.graphs import random_graph, with_labels

from legnn.config.model import AttentionSettings, PublishedSettings
from legnn.graph import LabelGraph
from legnn.nn import LEGNN, ModelSettings
from legnn.nn import padding as channel_padding

IN = 11
NARROW = model_settings(hidden=540, layers=3, heads=3, label_at_input=True)


def make_graph() -> LabelGraph:
    return with_labels(random_graph(40, 150, torch.float32, weighted=False, directed=False))


def pair(settings: ModelSettings, classes: int, monkeypatch) -> tuple[LEGNN, LEGNN]:
    """The same model, padded and not."""
    models = []
    for multiple in (channel_padding.MULTIPLE, 1):
        monkeypatch.setattr(channel_padding, "MULTIPLE", multiple)
        torch.manual_seed(0)
        models.append(LEGNN(IN, classes, settings).double())
    return models[0], models[1]


def outcome(model: LEGNN, x: torch.Tensor, graph: LabelGraph) -> list[torch.Tensor]:
    logits = model.train()(x, graph)
    logits.square().sum().backward()
    nodes, labels = model.eval().embed(x, graph)
    return [logits, model(x, graph), nodes, *([] if labels is None else [labels])]


@pytest.mark.parametrize("backbone", PADDED)
@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize(("norm", "label_norm", "residual"), [("batch", "layer", "linear"), ("none", "batch", "none")])
def test_a_padded_model_has_the_logits_and_gradients_of_the_model(
    backbone, labels, norm, label_norm, residual, monkeypatch
):
    graph, x = make_graph(), torch.randn(40, IN, dtype=torch.float64)
    settings = replace(
        NARROW,
        backbone=backbone,
        labels=labels,
        norm=norm,
        residual=residual,
        published=PublishedSettings(label_norm=label_norm),
    )
    padded, plain = pair(settings, graph.num_classes, monkeypatch)
    assert plain.channels == 540 < padded.channels <= 552
    assert padded.channels % 8 == 0
    assert padded.num_parameters() == plain.num_parameters()
    torch.testing.assert_close(outcome(padded, x, graph), outcome(plain, x, graph), rtol=1e-9, atol=1e-9)
    for (name, wide), narrow in zip(padded.named_parameters(), plain.parameters(), strict=True):
        if narrow.grad is None:
            assert wide.grad is None, name
        else:
            scale = narrow.grad.norm()
            torch.testing.assert_close(wide.grad.norm(), scale, msg=name)
            assert (wide.grad != 0).sum() <= narrow.numel(), name


@pytest.mark.parametrize("backbone", PADDED)
def test_padding_stays_zero_in_training(backbone):
    graph, x = make_graph(), torch.randn(40, IN)
    torch.manual_seed(0)
    options = {"residual": "linear", "dropout": 0.3, "input_dropout": 0.1}
    model = LEGNN(IN, graph.num_classes, replace(NARROW, backbone=backbone, norm="batch", **options)).train()
    is_zero = {name: parameter == 0 for name, parameter in model.named_parameters()}
    optimizer = torch.optim.Adam(model.parameter_groups(0.1, weight_decay_layers=0.1), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(x, graph).square().sum().backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 or "label_norm" not in name:
            stored = [model.padding.live(size) if size % model.padding.width == 0 else None for size in parameter.shape]
            padding = torch.ones_like(parameter, dtype=torch.bool)
            live = torch.meshgrid(
                *(torch.arange(n) if at is None else at for n, at in zip(parameter.shape, stored, strict=True)),
                indexing="ij",
            )
            padding[live] = False
            assert is_zero[name][padding].all(), name
            assert not parameter[padding].any(), name


def test_narrow_models_and_other_layers_are_not_padded():
    for changed in (
        {"hidden": 15},
        {"backbone": "transformer"},
        {"norm": "layer"},
        {"hidden": 512, "attention": AttentionSettings(heads=4)},
    ):
        settings = replace(NARROW, **changed)
        assert LEGNN(IN, 3, settings).channels == settings.hidden
