"""Boosted trees: the same probabilities as scikit-learn's, from tensors, and features that hold no own label."""

import numpy as np
import pandas as pd
import pytest
import skops.io
import torch
from hypothesis import given, settings
from sklearn.ensemble import HistGradientBoostingClassifier
from tests.graphs import small_data
from tests.named import arguments, model_settings, named
from tests.strategies import label_graphs
from tests.typed_graphs import small_hetero

import legnn
from legnn.baselines import ARCHITECTURES
from legnn.baselines.boosted_trees import NEVER_SEEN, BoostedTrees, Classifier, NeighborFeatures
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape, ModelSettings
from legnn.nn.reference import dense_blocks
from legnn.training import FullBatch, Objective, Task

QUICK = {"architecture": "boosted_trees", "trees": 5, "checkpoint_seconds": 0}


def random_rows(classes: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 6)).astype(np.float32)
    x[:, 2] = 1
    return x, random.integers(0, classes, 300)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_saved_classifier_has_the_probabilities_of_scikit_learn(classes):
    x, y = random_rows(classes)
    trees, loaded = Classifier(), Classifier()
    trees.fit(HistGradientBoostingClassifier(max_iter=7, early_stopping=False), x, y)
    loaded.load_state_dict(trees.state_dict())
    raw = loaded(torch.from_numpy(x))
    assert raw.dtype == torch.float64
    assert torch.equal(raw, trees(torch.from_numpy(x)))
    logits = torch.cat([torch.zeros_like(raw), raw], 1) if classes == 2 else raw
    expected = HistGradientBoostingClassifier(max_iter=7, early_stopping=False).fit(x, y).predict_proba(x)
    torch.testing.assert_close(logits.softmax(1), torch.from_numpy(expected), rtol=0, atol=1e-9)


class Unknown:
    """A type that skops is not told to trust."""


def test_a_classifier_of_another_type_is_not_read():
    trees = Classifier()
    other = skops.io.dumps({"columns": np.arange(1), "classifier": Unknown()})
    trees.set_extra_state(torch.frombuffer(bytearray(other), dtype=torch.uint8))
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException, match="Unknown"):
        trees(torch.zeros(1, 1))


@given(graph=label_graphs(label_edges=False))
@settings(max_examples=12, deadline=None)
def test_the_features_are_means_over_neighbors_without_the_node_itself(graph):
    x = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    A, Y, _ = dense_blocks(graph, torch.float64)
    A.fill_diagonal_(0)
    mean = A / A.sum(1, keepdim=True).clamp(min=1e-300)
    expected = torch.cat([x, mean @ x, mean @ mean @ x, mean @ Y], 1)
    found = NeighborFeatures(x)
    torch.testing.assert_close(found.of(graph), expected, rtol=1e-10, atol=1e-10)
    hidden = graph.show(graph.shown[:0], graph.y[:0])
    torch.testing.assert_close(found.of(hidden)[:, :9], expected[:, :9], rtol=1e-10, atol=1e-10)


@given(graph=label_graphs(label_edges=False))
@settings(max_examples=12, deadline=None)
def test_no_node_reads_its_own_label(graph):
    x = torch.zeros(graph.num_nodes, 1)
    before = NeighborFeatures(x).of(graph)
    for i, node in enumerate(graph.shown.tolist()):
        y = graph.y.clone()
        y[i] = (y[i] + 1) % graph.num_classes
        assert torch.equal(NeighborFeatures(x).of(graph.show(graph.shown, y))[node], before[node])


def task_of(classes: int = 3, nodes: int = 60) -> Task:
    edges = torch.randint(0, nodes, (2, 4 * nodes))
    y = torch.arange(nodes) % classes
    x = torch.randn(nodes, 4) + torch.nn.functional.one_hot(y, 4)
    every = torch.arange(nodes)
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(edges, nodes), 4)
    return Task(x, graph, y, every[:40], every[40:], every[:0], every[40:])


def fitted(task: Task, **options) -> tuple[BoostedTrees, FullBatch]:
    torch.manual_seed(0)
    model = BoostedTrees(model_settings(trees=5, **options), DataShape(4, 4))
    batching = FullBatch(model, task, Objective(), torch.optim.SGD([torch.zeros(1)]), torch.Generator())
    batching.train_epoch(1)
    return model, batching


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_without_training_nodes_is_never_predicted(classes):
    task = task_of(classes)
    model, batching = fitted(task)
    logits = batching.all_logits(task.train)
    assert logits.shape == (60, 4)
    assert (logits[:, classes:] == NEVER_SEEN).all()
    assert float((logits.argmax(1) == task.y)[:40].float().mean()) > 0.8
    assert model.num_parameters() == 0


def test_the_metrics_of_the_only_epoch_are_those_before_it_is_fitted():
    """What is predicted in training does not depend on the node's own label, which is learned afterwards."""
    task = task_of()
    torch.manual_seed(0)
    model = BoostedTrees(model_settings(trees=5), DataShape(4, 4))
    seen = []
    model.register_forward_hook(lambda module, given, out: seen.append(out.clone()))
    optimizer = torch.optim.SGD([torch.zeros(1)])
    FullBatch(model, task, Objective(), optimizer, torch.Generator()).train_epoch(1)
    assert len(seen) == 1
    assert not seen[0].any()
    assert model.trees.get_extra_state().numel() > 0


def test_one_class_is_refused():
    with pytest.raises(InputError, match="at least two classes"):
        ARCHITECTURES["boosted_trees"](ModelSettings(), DataShape(4, 1))
    with pytest.raises(InputError, match="training nodes of at least two classes"):
        fitted(task_of(1))


def test_they_learn_and_take_several_node_types_and_self_training():
    assert legnn.train(small_data(120), **arguments(**QUICK | {"trees": 30})).result.test["accuracy"] > 0.6
    run = legnn.train(small_hetero(), **arguments(**QUICK, as_train=True, pseudo_label_threshold=0.4, use_tc=False))
    assert len(run.predictions) == run.predictions["id"].nunique()


def test_mini_batches_are_refused(tmp_path):
    with pytest.raises(InputError, match="BoostedTrees trains on the whole graph at once"):
        legnn.train(small_data(), **arguments(**QUICK, batch=8, fanout="3"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_many_features_become_their_principal_components_and_few_stay(tmp_path):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    wide = torch.randn(60, 4, generator=generator) @ torch.randn(4, 300, generator=generator)
    data = small_data(60, x=wide + torch.nn.functional.one_hot(y, 300).float())
    run = legnn.train(data, settings=named(architecture="boosted_trees", trees=3), out=tmp_path / "run")
    kept = run.model.components
    torch.testing.assert_close(kept[:, :60].T @ kept[:, :60], torch.eye(60), atol=1e-4, rtol=0)
    again = legnn.Run.open(tmp_path / "run").predict(data)
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)
    assert legnn.train(small_data(60), settings=named(architecture="boosted_trees", trees=3)).model.components is None
