"""From features and shown labels to the first layer: the four label usages by their equations."""

import pytest
import torch
from hypothesis import given, settings
from tests.backbones import PLAIN
from tests.named import model_settings
from tests.strategies import label_graphs

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import LEGNN
from legnn.nn.encoder import Encoder, LabelEmbedding
from legnn.nn.layer import Factors
from legnn.nn.reference import dense_blocks
from legnn.nn.scaling import FeatureScale

IN, OUT = 4, 6


def encoder(graph: LabelGraph, labels: str, **options) -> Encoder:
    torch.manual_seed(0)
    return Encoder(IN, graph.num_classes, model_settings(labels=labels, hidden=OUT, **options)).double()


def features(graph: LabelGraph) -> torch.Tensor:
    return torch.randn(graph.num_nodes, IN, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def shown_matrix(graph: LabelGraph) -> torch.Tensor:
    return dense_blocks(graph, torch.float64)[1]


@given(label_graphs())
@settings(max_examples=12, deadline=None)
def test_concat_is_one_linear_map_of_features_beside_labels(graph):
    part, x, Y = encoder(graph, "concat"), features(graph), shown_matrix(graph)
    weight = torch.cat([part.project.weight.T, part.label_rows])
    nodes, labels = part(x, graph)
    torch.testing.assert_close(nodes, torch.cat([x, Y], 1) @ weight)
    assert labels is None


@given(label_graphs())
@settings(max_examples=12, deadline=None)
def test_addition_adds_the_embedded_label_to_the_features_first(graph):
    part, x, Y = encoder(graph, "addition"), features(graph), shown_matrix(graph)
    nodes, labels = part(x, graph)
    torch.testing.assert_close(nodes, (x + Y @ part.label_rows) @ part.project.weight.T)
    assert labels is None


@pytest.mark.parametrize("label_at_input", [False, True])
@given(graph=label_graphs())
@settings(max_examples=12, deadline=None)
def test_label_at_input_gives_a_node_its_own_labels_embedding(label_at_input, graph):
    part, x, Y = encoder(graph, "enhanced", label_at_input=label_at_input), features(graph), shown_matrix(graph)
    nodes, labels = part(x, graph)
    expected = x @ part.project.weight.T
    torch.testing.assert_close(labels, part.label_embedding.rows)
    torch.testing.assert_close(nodes, expected + Y @ labels if label_at_input else expected)


@given(label_graphs())
@settings(max_examples=10, deadline=None)
def test_vanilla_sees_no_label(graph):
    part, x = encoder(graph, "vanilla"), features(graph)
    nodes, labels = part(x, graph)
    torch.testing.assert_close(nodes, x @ part.project.weight.T)
    assert labels is None


@given(label_graphs())
@settings(max_examples=12, deadline=None)
def test_the_class_mean_is_over_shown_nodes_alone_and_zero_where_none_is_shown(graph):
    part, x = encoder(graph, "enhanced", label_features="class-mean"), features(graph)
    means = torch.zeros(graph.num_classes, IN, dtype=torch.float64)
    for c in range(graph.num_classes):
        mine = graph.shown[graph.y == c]
        if len(mine):
            means[c] = x[mine].mean(0)
    torch.testing.assert_close(part(x, graph)[1], means @ part.label_embedding.project.weight.T)


def test_given_label_features_are_projected():
    given_rows = torch.randn(3, 7)
    embedding = LabelEmbedding("given", IN, 3, OUT, given_rows)
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(torch.tensor([[0], [0]]), 1), 3)
    torch.testing.assert_close(embedding(torch.zeros(1, IN), graph), given_rows @ embedding.project.weight.T)
    assert "features" in embedding.state_dict(), "given features must be saved with the weights"


@pytest.mark.parametrize(
    ("rows", "message"),
    [(None, "needs a matrix with a row for each class"), (torch.zeros(2, 7), "a row for each of the 3 classes")],
)
def test_given_label_features_must_be_there_and_fit(rows, message):
    with pytest.raises(InputError, match=message):
        LabelEmbedding("given", IN, 3, OUT, rows)


def test_dropout_on_the_input_is_for_training_alone():
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(torch.tensor([[0], [0]]), 50), 2)
    part, x = encoder(graph, "vanilla", input_dropout=0.5), features(graph)
    assert not torch.equal(part.train()(x, graph)[0], part(x, graph)[0])
    assert torch.equal(part.eval()(x, graph)[0], part(x, graph)[0])


def test_rows_are_divided_by_their_sum_and_an_empty_row_stays_empty():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [-1.0, 1.0]])
    assert FeatureScale("row", 2)(x).tolist() == [[0.25, 0.75], [0.0, 0.0], [-0.5, 0.5]]


def test_columns_are_standardized_and_a_constant_one_becomes_zero():
    x = torch.randn(100, 4) * torch.tensor([1.0, 50.0, 0.0, 0.0]) + torch.tensor([0.0, 3.0, 7.0, 1e6])
    scale = FeatureScale("standard", 4)
    scale.fit(x)
    out = scale(x)
    torch.testing.assert_close(out.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0, 0.0]))


def test_one_number_brings_the_entries_to_mean_square_one_and_leaves_the_zeros():
    x = torch.tensor([[0.0, 3.0], [4.0, 0.0], [0.0, 0.0]])
    scale = FeatureScale("entries", 2)
    scale.fit(x)
    out = scale(x)
    torch.testing.assert_close(out, x / 12.5**0.5)
    assert float(out[out != 0].square().mean()) == pytest.approx(1)
    nothing = FeatureScale("entries", 2)
    nothing.fit(torch.zeros(3, 2))
    assert not nothing(torch.zeros(3, 2)).any()


def test_statistics_taken_over_some_rows_at_a_time_are_those_of_all(monkeypatch):
    x = torch.relu(torch.randn(50, 7))
    scales = [FeatureScale("entries", 7), FeatureScale("entries", 7)]
    scales[0].fit(x)
    monkeypatch.setattr("legnn.nn.scaling.ENTRIES", 20)
    scales[1].fit(x)
    expected = (x.double().square().sum() / (x != 0).sum()).sqrt().float()
    assert scales[0].deviation == scales[1].deviation == expected


def test_a_grown_graph_is_scaled_by_the_statistics_of_the_first():
    first, grown = torch.randn(20, 3), torch.randn(30, 3) * 5 + 2
    scale, again = FeatureScale("standard", 3), FeatureScale("standard", 3)
    scale.fit(first)
    again.load_state_dict(scale.state_dict())
    expected = (grown - first.mean(0)) / first.std(0, correction=0)
    torch.testing.assert_close(again(grown), expected)


def test_features_may_stay_as_they_are():
    x = torch.randn(5, 3)
    scale = FeatureScale("none", 3)
    scale.fit(x)
    assert torch.equal(scale(x), x)


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("backbone", PLAIN)
@given(graph=label_graphs())
@settings(max_examples=5, deadline=None)
def test_a_first_layer_over_factors_gives_the_values_and_gradients_of_one_over_states(backbone, labels, graph):
    torch.manual_seed(0)
    chosen = model_settings(backbone=backbone, labels=labels, hidden=64, layers=2, residual="linear", label_edges=True)
    model, x = LEGNN(IN, graph.num_classes, chosen).double(), features(graph)
    results = []
    for factors in (True, False):
        model.reads_products = factors
        model.zero_grad()
        logits = model(x, graph)
        logits.square().sum().backward()
        results.append([logits, *(parameter.grad for parameter in model.parameters())])
    assert isinstance(model.encoder.factors(x, graph)[0], Factors)
    torch.testing.assert_close(*results)
