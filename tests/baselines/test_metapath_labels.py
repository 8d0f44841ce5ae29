"""Metapath labels is its equation, written with dense matrices, and no label returns to its node."""

from contextlib import nullcontext
from itertools import pairwise

import pytest
import torch
from tests.baselines.peers import features as features_of_peers
from tests.baselines.peers import graph_for, make
from tests.baselines.test_typed_runs import NoSynchronization
from tests.named import arguments, model_settings, named
from tests.nn.relation_graphs import CLASSES, EXACT, RELATIONS, dense_relations, one_hot, row_mean, typed_graph
from tests.typed_graphs import small_hetero, with_tags
from torch import Tensor

import legnn
from legnn.baselines.metapath_labels import MOST_PRODUCTS, MetapathLabels, feature_paths, label_paths, metapath_graph
from legnn.config.candidates import CANDIDATES
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape

FEATURES = 4


def typed_model(target: int, **options) -> MetapathLabels:
    """A model of double precision with random weights."""
    torch.manual_seed(0)
    settings = model_settings(**{"hidden": 6, "layers": 2, "norm": "layer", **options})
    model = MetapathLabels(settings, DataShape(FEATURES, CLASSES, 3, RELATIONS, target=target)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model.eval()


def dense_means(graph: LabelGraph) -> dict[tuple[int, int], Tensor]:
    """`M_ts` `[M, M]` of each target and source type, without self-loops."""
    return {(t, s): row_mean(A - torch.diag(A.diag())) for (s, t), A in dense_relations(graph).items()}


def dense_path(means: dict[tuple[int, int], Tensor], path: tuple[int, ...], is_type: Tensor) -> Tensor:
    product = torch.diag(is_type.double())
    for pair in pairwise(path):
        product = product @ means[pair]
    return product


def expected_logits(model: MetapathLabels, graph: LabelGraph, x: Tensor, left_out: set | None = None) -> Tensor:
    means, is_target, Y = dense_means(graph), graph.node_type == model.target, one_hot(graph)
    total = model.bias
    for path, linear in zip(model.feature_paths, model.project, strict=True):
        total = total + dense_path(means, path, is_target) @ x @ linear.weight.T
    for path, linear in zip(model.label_paths, model.project_labels, strict=True):
        if path not in (left_out or ()):
            P = dense_path(means, path, is_target)
            total = total + row_mean((P - torch.diag(P.diag())) @ Y) @ linear.weight.T
    for act, matrix in zip(model.acts, model.matrices, strict=True):
        norm = act.norm
        total = torch.nn.functional.layer_norm(total, (total.size(1),), norm.weight, norm.bias).relu()
        total = total @ matrix.weight.T + matrix.bias
    return total * is_target[:, None]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", [0, 1])
def test_it_is_its_equation(target, weighted):
    graph, model = typed_graph(30, weighted=weighted, shown=20), typed_model(target)
    assert any(len(path) == 5 for path in model.label_paths)
    x = torch.randn(30, FEATURES, dtype=torch.float64)
    found = model(model.prepare(x, node_type=graph.node_type), graph)
    torch.testing.assert_close(found, expected_logits(model, graph, x), **EXACT)


@pytest.mark.parametrize("layers", [1, 3])
def test_layers_are_matrices_after_the_means(layers):
    graph, model = typed_graph(30), typed_model(0, layers=layers)
    assert len(model.matrices) == layers - 1
    x = torch.randn(30, FEATURES, dtype=torch.float64)
    found = model(model.prepare(x, node_type=graph.node_type), graph)
    torch.testing.assert_close(found, expected_logits(model, graph, x), **EXACT)


def test_paths_of_length_four_with_an_expensive_diagonal_are_left_out():
    # all nodes of type 0 are joined to all of type 1: half of the path 0 1 0 1 0 takes 700 · 45 · 700 products
    nodes, first = 745, 700
    assert first**2 * (nodes - first) > MOST_PRODUCTS
    types = (torch.arange(nodes) >= first).long()
    ends = torch.cartesian_prod(torch.arange(first), torch.arange(first, nodes)).T
    ends = torch.cat([ends, ends.flip(0)], 1)
    shown = torch.arange(0, nodes, 7)
    graph = LabelGraph(Adjacency.from_edge_index(ends, nodes), shown, shown % (CLASSES - 1), CLASSES, None, types)
    model = typed_model(0)
    x = torch.randn(nodes, FEATURES, dtype=torch.float64)
    long = {path for path in model.label_paths if len(path) == 5}
    found = model(model.prepare(x, node_type=graph.node_type), graph)
    torch.testing.assert_close(found, expected_logits(model, graph, x, long), **EXACT)


def test_the_paths_of_papers_authors_and_terms():
    # authors write papers, and papers have terms: 0 ↔ 1 ↔ 2
    relations = ((0, 1), (1, 0), (1, 2), (2, 1))
    assert feature_paths(relations, 0) == [(0,), (0, 1), (0, 1, 0), (0, 1, 2)]
    assert label_paths(relations, 0) == [(0, 1, 0), (0, 1, 0, 1, 0), (0, 1, 2, 1, 0)]
    assert label_paths(((0, 0),), 0) == [(0, 0), (0, 0, 0), (0, 0, 0, 0, 0)]
    # terms that send to papers alone: no label comes back from them
    assert label_paths(((0, 1), (1, 0), (2, 1)), 0) == [(0, 1, 0), (0, 1, 0, 1, 0)]


def test_on_a_homogeneous_graph_a_node_reads_the_labels_of_others_and_never_its_own():
    graph, model = graph_for("metapath_labels"), make("metapath_labels")
    inputs = model.prepare(features_of_peers())
    before = model(inputs, graph)
    changed = 0
    for place, node in enumerate(graph.shown.tolist()):
        y = graph.y.clone()
        y[place] = (y[place] + 1) % graph.num_classes
        difference = (model(inputs, graph.show(graph.shown, y)) - before).abs().amax(1)
        # a sum and the same sum without its own part differ in the last bits
        assert difference[node] < 1e-12
        changed += int((difference > 1e-6).sum())
    assert changed > 0


def test_diagonals_are_computed_once_for_an_adjacency():
    graph, model = typed_graph(30), typed_model(0)
    inputs = model.prepare(torch.randn(30, FEATURES, dtype=torch.float64), node_type=graph.node_type)
    first = model(inputs, graph)
    again, paths = graph.show(graph.shown, graph.y), metapath_graph(graph, 3, RELATIONS)
    assert metapath_graph(again, 3, RELATIONS) is paths
    for path in model.label_paths:
        if len(path) > 2:
            assert paths.self_weight(path, torch.float64) is paths.self_weight(path, torch.float64)
    assert torch.equal(model(inputs, again), first)


def test_once_the_graph_is_known_a_step_does_not_synchronize():
    graph, model = typed_graph(30), typed_model(0, dropout=0.5, input_dropout=0.2).train()
    inputs = model.prepare(torch.randn(30, FEATURES, dtype=torch.float64), node_type=graph.node_type)
    for number in (0, 1):
        shown = graph.show(graph.shown[number:], graph.y[number:])
        with NoSynchronization() if number else nullcontext():
            model(inputs, shown).sum().backward()


def test_bfloat16_is_accepted():
    graph, model = typed_graph(30), typed_model(0).float()
    x = torch.randn(30, FEATURES)
    logits, expected = (model(model.prepare(x, dtype, graph.node_type), graph) for dtype in (torch.bfloat16, None))
    assert logits.dtype == torch.float32
    logits.sum().backward()
    torch.testing.assert_close(logits, expected, rtol=0.1, atol=0.1)


def test_means_follow_the_inputs():
    graph, model = typed_graph(30), typed_model(0)
    x = torch.randn(30, FEATURES, dtype=torch.float64)
    one, other = (model.prepare(value, node_type=graph.node_type) for value in (x, 2 * x))
    first = model(one, graph)
    assert not torch.equal(model(other, graph), first)
    assert torch.equal(model(one, graph), first)


def test_it_learns_from_the_type_that_has_labels():
    data = with_tags(small_hetero())
    run = legnn.train(
        data, settings=named(architecture="metapath_labels", hidden=16, epochs=60, lr=0.02, self_loops=False)
    )
    # papers come after authors: the target is not the first type
    assert run.model.target == 1
    assert run.result.val["accuracy"] > 0.5


@pytest.mark.parametrize("name", ["metapath-labels", "metapath-labels-wide"])
def test_its_candidates_can_be_trained(name):
    candidate = CANDIDATES[name]
    assert candidate.group == "metapath_labels"
    assert candidate.is_typed
    assert legnn.train(small_hetero(), **arguments(**{**candidate.values, "epochs": 2})).result.epochs == 2
