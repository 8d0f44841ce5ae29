"""The model: every backbone with every label usage, what trains, and what does not depend on the order of nodes."""

from dataclasses import fields

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from tests.backbones import PLAIN, UNTYPED
from tests.named import model_settings
from tests.strategies import label_graphs

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import LEGNN, ModelSettings

USAGES = ("vanilla", "concat", "addition", "enhanced")
IN, HIDDEN = 5, 8


def make(num_classes: int, backbone: str = "gcn", labels: str = "enhanced", **options) -> LEGNN:
    torch.manual_seed(0)
    given_rows = torch.randn(num_classes, 3) if options.get("label_features") == "given" else None
    options = {"hidden": HIDDEN, "layers": 3, "heads": 2, "label_at_input": True, "residual": "linear"} | options
    model = LEGNN(IN, num_classes, model_settings(backbone=backbone, labels=labels, **options), given_rows)
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    return model.double().eval()


def rich_graph(nodes: int = 15, classes: int = 3) -> LabelGraph:
    generator = torch.Generator().manual_seed(0)
    edges = torch.cat([torch.randint(0, nodes, (2, 40), generator=generator), torch.arange(nodes).repeat(2, 1)], 1)
    shown = torch.arange(0, nodes, 2)
    return LabelGraph(Adjacency.from_edge_index(edges, nodes), shown, shown % classes, classes)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", UNTYPED)
def test_every_parameter_is_trained(backbone, labels, norm):
    graph = rich_graph()
    model = make(3, backbone, labels, norm=norm).train()
    logits = model(torch.randn(15, IN, dtype=torch.float64), graph)
    F.cross_entropy(logits, torch.arange(15) % 3).backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("normalize", ["relation", "joint"])
@pytest.mark.parametrize("label_features", ["one-hot", "class-mean", "given"])
@pytest.mark.parametrize("backbone", PLAIN)
def test_every_parameter_of_a_layer_of_ours_gets_a_gradient_that_is_not_zero(backbone, label_features, normalize):
    graph = rich_graph()
    model = make(3, backbone, label_features=label_features, normalize=normalize).train()
    # a node that gives nothing to the loss but its label would leave no trace of it
    logits = model(torch.randn(15, IN, dtype=torch.float64), graph)
    F.cross_entropy(logits, torch.arange(15) % 3).backward()
    assert [name for name, parameter in model.named_parameters() if not parameter.grad.any()] == []


@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", UNTYPED)
@given(graph=label_graphs(label_edges=False, weighted=False))
@settings(max_examples=10, deadline=None)
def test_permuting_the_nodes_permutes_the_predictions(backbone, labels, graph):
    model = make(graph.num_classes, backbone, labels, norm="batch")
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(graph.num_nodes, IN, dtype=torch.float64, generator=generator)
    place = torch.randperm(graph.num_nodes, generator=generator)
    moved = LabelGraph(
        Adjacency.from_edge_index(place[graph.adjacency.edge_index], graph.num_nodes),
        place[graph.shown],
        graph.y,
        graph.num_classes,
    )
    torch.testing.assert_close(model(x[place.argsort()], moved)[place], model(x, graph))


@pytest.mark.parametrize("label_features", ["one-hot", "class-mean"])
@given(graph=label_graphs(label_edges=False, weighted=False))
@settings(max_examples=15, deadline=None)
def test_the_order_in_which_nodes_show_their_labels_does_not_matter(label_features, graph):
    model = make(graph.num_classes, "gat", label_features=label_features)
    x = torch.randn(graph.num_nodes, IN, dtype=torch.float64)
    order = torch.randperm(graph.shown.numel())
    torch.testing.assert_close(model(x, graph.show(graph.shown[order], graph.y[order])), model(x, graph))


@pytest.mark.parametrize("labels", USAGES)
def test_labels_reach_the_prediction_of_others_unless_the_model_is_vanilla(labels):
    graph, model = rich_graph(), make(3, labels=labels)
    x = torch.randn(15, IN, dtype=torch.float64)
    others = torch.arange(1, 15, 2)
    moved = (model(x, graph) - model(x, graph.show(graph.shown, (graph.y + 1) % 3)))[others].abs().max()
    assert (moved > 1e-6) == (labels != "vanilla")


@pytest.mark.parametrize("label_at_input", [True, False])
def test_with_label_at_input_a_label_travels_as_many_hops_as_there_are_layers(label_at_input):
    path = torch.stack([torch.arange(5), torch.arange(1, 6)])
    edges = torch.cat([path, path.flip(0), torch.arange(6).repeat(2, 1)], 1)
    graph = LabelGraph(Adjacency.from_edge_index(edges, 6), torch.tensor([0]), torch.tensor([0]), 2)
    model = make(2, layers=2, label_at_input=label_at_input)
    x = torch.randn(6, IN, dtype=torch.float64)
    difference = (model(x, graph) - model(x, graph.show(graph.shown, 1 - graph.y))).abs().amax(1) > 1e-9
    hops = 2 if label_at_input else 1
    assert difference.tolist() == [hop <= hops for hop in range(6)]


def test_the_representations_of_labels_come_along_where_labels_are_nodes():
    graph = rich_graph()
    x = torch.randn(15, IN, dtype=torch.float64)
    enhanced = make(3)
    nodes, labels = enhanced.embed(x, graph)
    assert nodes.shape == (15, HIDDEN)
    assert labels.shape == (3, HIDDEN)
    torch.testing.assert_close(enhanced.classifier(nodes), enhanced(x, graph))
    assert make(3, labels="concat").embed(x, graph).labels is None


def test_the_number_of_parameters_is_that_of_the_equations():
    model = make(3, "gcn", "vanilla", layers=2, residual="identity")
    assert model.num_parameters() == IN * HIDDEN + 2 * (HIDDEN * HIDDEN + HIDDEN) + HIDDEN * 3 + 3
    enhanced = make(3, "gcn", "enhanced", layers=2, residual="identity")
    # a row a class, W_L in both layers, and a bias of labels in the first: nothing reads those of the last
    assert enhanced.num_parameters() == model.num_parameters() + 3 * HIDDEN + 2 * HIDDEN * HIDDEN + HIDDEN


def test_labels_have_the_norm_of_the_settings_where_nodes_have_one():
    kinds = {
        (norm, label_norm): type(make(3, norm=norm, label_norm=label_norm).layers[0].label_norm).__name__
        for norm in ("none", "batch", "layer")
        for label_norm in ("layer", "batch")
    }
    assert {kind for (norm, _), kind in kinds.items() if norm == "none"} == {"NoneType"}
    assert {kind for (norm, label), kind in kinds.items() if norm != "none" and label == "layer"} == {"LayerNorm"}
    assert {kind for (norm, label), kind in kinds.items() if norm != "none" and label == "batch"} == {"BatchNorm1d"}


def test_one_class_is_no_batch_of_labels():
    with pytest.raises(InputError, match="label_norm = batch needs at least two classes"):
        make(1, norm="batch", label_norm="batch")
    make(1, norm="none", label_norm="batch")


def test_the_settings_of_a_model_leave_nothing_open():
    plain = ModelSettings()
    assert all(getattr(plain, field.name) is not None for field in fields(plain))
    assert LEGNN(IN, 3, plain).num_stages == plain.layers


@pytest.mark.parametrize("labels", USAGES)
def test_wrong_features_are_refused(labels):
    model, graph, x = make(3, labels=labels), rich_graph(), torch.randn(15, IN, dtype=torch.float64)
    for wrong in (x[1:], torch.cat([x, x]), x[:, 1:], torch.cat([x, x], 1), x.long(), x[0]):
        with pytest.raises(InputError, match=r"\bx must"):
            model(wrong, graph)
    for wrong in (x[:, 1:], torch.cat([x, x], 1), x.long(), x[0]):
        with pytest.raises(InputError, match=r"\bx must"):
            model.prepare(wrong)
    with pytest.raises(InputError, match="graph must be a LabelGraph or a SampledLabelGraph, got Tensor"):
        model(x, graph.adjacency.edge_index)


@pytest.mark.parametrize("labels", ["concat", "addition", "enhanced"])
def test_a_graph_of_other_classes_is_refused(labels):
    with pytest.raises(InputError, match="graph has 3 classes, and the model was made for 2"):
        make(2, labels=labels)(torch.randn(15, IN, dtype=torch.float64), rich_graph(classes=3))
