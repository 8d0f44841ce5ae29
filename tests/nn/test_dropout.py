"""What `layer_dropout` and `drop_labels` drop, and what they leave."""

import pytest
import torch
from tests.backbones import WITH_LIFTED
from tests.named import model_settings
from tests.nn.test_layers import IN, OUT, inputs, make
from tests.nn.test_model import make as make_model
from tests.nn.test_model import rich_graph

from legnn.config.model import PublishedSettings
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import BACKBONES
from legnn.nn.encoder import Encoder
from legnn.nn.published import PublishedGAT

LAYERS = ["gcn", "sage", "gat", "gat, as published", "gat, source attention", "gat, target map"]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_drops_in_training_alone(name):
    graph = rich_graph()
    plain, dropping = make(name), make(name, dropout=0.5)
    x, labels = inputs(graph)
    torch.testing.assert_close(dropping.eval()(x, labels, graph), plain(x, labels, graph), rtol=0, atol=0)
    nodes, new_labels = dropping.train()(x, labels, graph)
    again = dropping(x, labels, graph)
    assert not torch.equal(nodes, again[0])
    assert not torch.equal(new_labels, again[1])


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_the_mean_over_many_draws_is_the_layer_without_dropout(name):
    graph = rich_graph()
    plain, dropping = make(name), make(name, dropout=0.3).train()
    x, labels = inputs(graph)
    with torch.no_grad():
        draws = [dropping(x, labels, graph) for _ in range(400)]
        expected = plain(x, labels, graph)
    for k in (0, 1):
        found = torch.stack([draw[k] for draw in draws])
        error = found.std(0) / 20
        assert ((found.mean(0) - expected[k]).abs() <= 5 * error + 1e-9).all()


def test_the_root_weight_of_graphsage_reads_what_is_not_dropped():
    nobody = LabelGraph.without_labels(Adjacency.from_edge_index(torch.zeros(2, 0, dtype=torch.long), 6), 3)
    layer = make("sage", dropout=0.9).train()
    x, labels = inputs(nobody)
    nodes, new_labels = layer(x, labels, nobody)
    torch.testing.assert_close(nodes, layer.root(x))
    torch.testing.assert_close(new_labels, layer.label_root(labels))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("normalize", ["relation", "joint"])
def test_values_and_source_scores_share_a_draw_and_target_scores_have_another(monkeypatch, normalize, mapped):
    calls = []

    def twice_then_thrice(x):
        calls.append(tuple(x.shape))
        return (2 + (len(calls) - 1) % 2) * x

    graph = rich_graph()
    layer = make("gat, target map" if mapped else "gat, target scores", normalize=normalize, dropout=0.5).train()
    heads = layer.attention.heads
    same = PublishedGAT(IN, OUT, PublishedSettings(target_map=True), heads=heads, normalize=normalize).double()
    state = dict(layer.state_dict())
    for matrix, target_map in (("node", "target_map"), ("label", "label_target_map")):
        state[f"{target_map}.weight"] = 3 * state[f"{target_map if mapped else matrix}.weight"]
    same.load_state_dict({**state, **{f"{one}.weight": 2 * state[f"{one}.weight"] for one in ("node", "label")}})
    x, labels = inputs(graph)
    monkeypatch.setattr(layer, "drop", twice_then_thrice)
    found = layer(x, labels, graph)
    assert calls == [(15, IN), (15, IN), (3, IN), (3, IN)]
    monkeypatch.undo()
    torch.testing.assert_close(found, same(x, labels, graph))


@pytest.mark.parametrize("residual", ["none", "identity", "linear"])
@pytest.mark.parametrize("backbone", WITH_LIFTED)
def test_gradients_of_a_model_with_dropout_in_its_layers_are_right(backbone, residual):
    graph = rich_graph()
    model = make_model(3, backbone, residual=residual, layer_dropout=0.4, layers=2).train()
    x = torch.randn(15, IN, dtype=torch.float64)
    weights = [one for name, one in model.named_parameters() if name in ("encoder.project.weight", "classifier.weight")]

    def loss():
        torch.manual_seed(5)
        return model(x, graph).square().sum()

    for weight, gradient in zip(weights, torch.autograd.grad(loss(), weights), strict=True):
        with torch.no_grad():
            step = torch.randn_like(weight) * 1e-6
            weight += step
            after = loss()
            weight -= 2 * step
            before = loss()
            weight += step
        torch.testing.assert_close((after - before) / 2, (gradient * step).sum(), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("label_at_input", [False, True])
def test_rows_of_one_hot_labels_are_dropped_as_a_whole(label_at_input):
    given = {"hidden": 6, "input_dropout": 0.4, "drop_labels": True, "label_at_input": label_at_input}
    graph, classes = rich_graph(classes=3), 3
    encoder = Encoder(IN, classes, model_settings(**given)).train()
    rows = encoder.label_embedding.rows
    kept = torch.zeros(200, classes, dtype=torch.bool)
    for k in range(200):
        nodes, labels = encoder(torch.zeros(15, IN), graph)
        kept[k] = labels.abs().sum(1) > 0
        torch.testing.assert_close(labels, torch.where(kept[k][:, None], rows / 0.6, 0.0))
        at_input = labels[graph.y] if label_at_input else torch.zeros(len(graph.y), 6)
        torch.testing.assert_close(nodes[graph.shown], at_input)
    assert 0.5 < kept.float().mean() < 0.7
    assert torch.equal(encoder.eval()(torch.zeros(15, IN), graph)[1], rows)


def test_labels_are_not_dropped_unless_the_settings_say_so():
    encoder = Encoder(IN, 3, model_settings(hidden=6, input_dropout=0.9)).train()
    assert torch.equal(encoder(torch.zeros(15, IN), rich_graph())[1], encoder.label_embedding.rows)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_without_biases_only_the_classifier_has_one(backbone):
    model = make_model(3, backbone, bias=False, norm="none")
    assert [name for name, _ in model.named_parameters() if "bias" in name] == ["classifier.bias"]
