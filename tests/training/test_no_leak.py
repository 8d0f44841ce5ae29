"""Nobody sees their own answer: a node's prediction never changes when its own label does."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.baselines.peers import OTHERS, TYPED
from tests.named import model_settings
from tests.strategies import label_graphs

from legnn.baselines import ARCHITECTURES, POSTPROCESS
from legnn.config import SelfTrainingSettings
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import LEGNN, DataShape, Model
from legnn.training import (
    ASTrain,
    FullBatch,
    Inference,
    LayerWise,
    Objective,
    Task,
    assign_folds,
    predict_without_own_label,
)

IN, HIDDEN = 4, 8
USAGES = ["vanilla", "concat", "addition", "enhanced"]
KINDS = [*USAGES, *OTHERS]
"""Label usages of our model, and other architectures."""
TRAINED = [kind for kind in KINDS if kind != "boosted_trees"]
"""Trees are fitted at once, in no training forward; `tests/baselines/test_boosted_trees.py` looks for their leaks."""


@st.composite
def tasks(draw, min_train: int = 2) -> Task:
    """A small graph with labels on all nodes, at least `min_train` of them for training."""
    graph: LabelGraph = draw(label_graphs(max_nodes=8, label_edges=False, weighted=False))
    M, C = graph.num_nodes, graph.num_classes
    y = draw(st.lists(st.integers(0, C - 1), min_size=M, max_size=M))
    train = sorted(draw(st.sets(st.integers(0, M - 1), min_size=min(min_train, M))))
    rest = [node for node in range(M) if node not in train]
    seed = draw(st.integers(0, 1000))
    return Task(
        x=torch.randn(M, IN, generator=torch.Generator().manual_seed(seed)),
        graph=LabelGraph.without_labels(graph.adjacency, max(C, 2)),
        y=torch.tensor(y),
        train=torch.tensor(train),
        val=torch.tensor(rest, dtype=torch.long),
        test=torch.tensor([], dtype=torch.long),
        candidates=torch.tensor(rest, dtype=torch.long),
    )


def typed(task: Task, kind: str) -> Task:
    """The same task with nodes of two types, where `kind` needs them."""
    if kind not in TYPED:
        return task
    node_type = torch.arange(len(task.x)) % 2
    return replace(task, node_type=node_type, graph=replace(task.graph, node_type=node_type))


def shape_of(task: Task) -> DataShape:
    pairs = () if task.node_type is None else ((0, 0), (0, 1), (1, 0), (1, 1))
    return DataShape(IN, task.graph.num_classes, 2 if pairs else 1, pairs, task.graph.adjacency.num_edges)


@st.composite
def models(draw, task: Task, kind: str, **fixed) -> Model:
    options = {
        "backbone": draw(st.sampled_from(["gcn", "sage", "gat", "gatv2", "gin"])),
        "label_at_input": draw(st.booleans()),
        "label_features": draw(st.sampled_from(["one-hot", "class-mean", "given"])),
        "normalize": draw(st.sampled_from(["relation", "joint"])),
        "norm": draw(st.sampled_from(["none", "batch", "layer"])),
        "residual": draw(st.sampled_from(["none", "identity", "linear"])),
        "layers": draw(st.integers(1, 3)),
        **fixed,
    }
    if options["backbone"] in ("gatv2", "gin"):
        options["normalize"] = "relation"
    torch.manual_seed(draw(st.integers(0, 1000)))
    if kind in ARCHITECTURES:
        options = {name: options[name] for name in ("norm", "layers", "dropout", "input_dropout") if name in options}
        options |= {"label_propagation.steps": draw(st.integers(1, 5)), "hops": draw(st.integers(1, 3)), "trees": 2}
        return ARCHITECTURES[kind](model_settings(hidden=HIDDEN, heads=2, **options), shape_of(task))
    settings = model_settings(labels=kind, hidden=HIDDEN, heads=2, **options)
    return LEGNN(IN, task.graph.num_classes, settings, torch.randn(task.graph.num_classes, 3))


def relabel(task: Task, node: int, shift: int = 1) -> Task:
    """The same task with another label on one node."""
    y = task.y.clone()
    y[node] = (y[node] + shift) % task.graph.num_classes
    return replace(task, y=y)


def training_forward(model: Model, task: Task, **options) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of one training epoch, as the loss sees them, and the predicted nodes."""
    seen = []
    handle = model.register_forward_hook(lambda module, inputs, out: seen.append(out.detach().clone()))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    objective = Objective(
        uses_labels=model.uses_labels, rule=ASTrain(SelfTrainingSettings(pseudo_label_threshold=0.4)), **options
    )
    optimizer = torch.optim.SGD(model.parameter_groups(0.0), lr=0.0)
    batching = FullBatch(model, task, objective, optimizer, torch.Generator().manual_seed(7))
    torch.manual_seed(0)
    batching.train_epoch(1)
    handle.remove()
    model.load_state_dict(state)
    return seen[0], objective.select(task.train, torch.Generator().manual_seed(7)).predicted


@pytest.mark.parametrize("kind", TRAINED)
@given(data=st.data(), task=tasks())
@settings(max_examples=12, deadline=None)
def test_in_training_a_predicted_nodes_logits_do_not_depend_on_its_label(kind, data, task):
    task = typed(task, kind)
    # one node is no batch: batch norm refuses it in training
    model = data.draw(models(task, kind, **{"norm": "none"} if len(task.x) == 1 else {}))
    before, predicted = training_forward(model, task, alpha=1.0 if len(task.train) == 1 else 0.5)
    assert len(predicted)
    for node in predicted.tolist():
        after, again = training_forward(model, relabel(task, node), alpha=1.0 if len(task.train) == 1 else 0.5)
        assert torch.equal(predicted, again)
        assert torch.equal(before[node], after[node])


@pytest.mark.parametrize("kind", TRAINED)
@given(data=st.data(), task=tasks())
@settings(max_examples=10, deadline=None)
def test_in_training_dropout_does_not_let_the_label_in_either(kind, data, task):
    task = typed(task, kind)
    model = data.draw(models(task, kind, norm="layer", dropout=0.5, input_dropout=0.3))
    before, predicted = training_forward(model, task, alpha=1.0 if len(task.train) == 1 else 0.5)
    node = data.draw(st.sampled_from(predicted.tolist()))
    after, _ = training_forward(model, relabel(task, node), alpha=1.0 if len(task.train) == 1 else 0.5)
    assert torch.equal(before[node], after[node])


def own_label_hidden(model: Model, task: Task, folds: int, postprocess: str = "none") -> torch.Tensor:
    """`[M, C]` the probabilities that a run predicts."""
    return Inference(
        LayerWise(model, task, torch.device("cpu"), torch.float32),
        task,
        folds_of(task, folds),
        uses_labels=model.uses_labels,
        postprocess=POSTPROCESS[postprocess](model_settings(**{"label_propagation.steps": 4})),
    ).predict_proba()


def test_only_the_nodes_asked_for_are_predicted_and_as_they_are_among_all():
    asked = []

    def predict(shown: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        asked.extend(nodes.tolist())
        return torch.stack([nodes, nodes * 0 + len(shown)], 1).double()

    shown, nodes, fold = torch.tensor([4, 6]), torch.tensor([2, 4, 6, 7]), torch.arange(9) % 5
    some = predict_without_own_label(predict, shown, fold, nodes)
    assert set(asked) == set(nodes.tolist())
    every = predict_without_own_label(predict, shown, fold)
    assert torch.equal(some[nodes], every[nodes])
    assert not some[[0, 1, 3, 5, 8]].any()


def folds_of(task: Task, folds: int) -> torch.Tensor:
    return assign_folds(np.arange(len(task.y)), folds)


@pytest.mark.parametrize("postprocess", POSTPROCESS)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), task=tasks(min_train=1), folds=st.integers(2, 10))
@settings(max_examples=10, deadline=None)
def test_in_evaluation_no_nodes_prediction_depends_on_its_label(kind, postprocess, data, task, folds):
    task = typed(task, kind)
    model = data.draw(models(task, kind))
    before = own_label_hidden(model, task, folds, postprocess)
    for node in range(len(task.y)):
        assert torch.equal(before[node], own_label_hidden(model, relabel(task, node), folds, postprocess)[node])


def cycle(nodes: int = 12, classes: int = 3) -> Task:
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    adjacency = Adjacency.from_edge_index(torch.cat([ring, ring.flip(0), torch.arange(nodes).repeat(2, 1)], 1), nodes)
    half = torch.arange(nodes // 2)
    return Task(
        x=torch.randn(nodes, IN),
        graph=LabelGraph.without_labels(adjacency, classes),
        y=torch.arange(nodes) % classes,
        train=half,
        val=half + nodes // 2,
        test=half[:0],
        candidates=half + nodes // 2,
    )


def task_and_model(kind: str) -> tuple[Task, Model]:
    """The cycle, and a model of `kind` that was not trained."""
    task = typed(cycle(), kind)
    torch.manual_seed(0)
    options = {"hidden": HIDDEN, "heads": 2, "layers": 2, "label_at_input": True}
    if kind in ARCHITECTURES:
        return task, ARCHITECTURES[kind](model_settings(**options), shape_of(task))
    return task, LEGNN(IN, task.graph.num_classes, model_settings(labels=kind, **options))


def logits_of(model: Model, task: Task, shown: torch.Tensor) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        return model(model.prepare(task.x, None, task.node_type), task.show(shown))


def sees_labels(kind: str) -> bool:
    """Whether any logit depends on a shown label."""
    task, model = task_and_model(kind)
    return not torch.equal(*(logits_of(model, one, task.train) for one in (task, relabel(task, 2))))


SEES_LABELS = [kind for kind in KINDS if sees_labels(kind)]
SEES_OWN = [kind for kind in SEES_LABELS if kind != "metapath_labels"]
"""It leaves out every path that returns to its node, so that a shown label of its own changes nothing."""


def test_the_models_that_see_labels_say_so():
    assert {"concat", "addition", "enhanced", "label_propagation", "unimp"} <= set(SEES_LABELS)
    assert [kind for kind in SEES_LABELS if not task_and_model(kind)[1].uses_labels] == []


@pytest.mark.parametrize("kind", SEES_OWN)
def test_without_selection_a_node_does_see_its_own_label_so_the_property_says_something(kind):
    task, model = task_and_model(kind)
    before, predicted = training_forward(model, task, selection=False)
    assert torch.equal(predicted, task.train)
    after, _ = training_forward(model, relabel(task, 2), selection=False)
    assert (before[2] - after[2]).abs().max() > 1e-4


@pytest.mark.parametrize("kind", SEES_OWN)
def test_with_every_label_shown_a_training_node_does_see_its_own_so_folds_are_needed(kind):
    task, model = task_and_model(kind)
    before, after = (logits_of(model, one, task.train) for one in (task, relabel(task, 2)))
    assert (before[2] - after[2]).abs().max() > 1e-4


@pytest.mark.parametrize(
    ("kind", "postprocess"),
    [*((kind, "none") for kind in SEES_LABELS), *((kind, "correct_and_smooth") for kind in KINDS)],
)
def test_other_nodes_labels_do_reach_a_node_in_evaluation(kind, postprocess):
    task, model = task_and_model(kind)
    before, after = (own_label_hidden(model, one, 6, postprocess) for one in (task, relabel(task, 2)))
    assert (before - after)[[0, 1, 3, 4, 6]].abs().amax(1).gt(1e-6).any()


def test_a_node_that_shows_no_label_is_predicted_with_every_training_label_shown():
    task, model = task_and_model("enhanced")
    everything = logits_of(model, task, task.train).softmax(-1)
    assert torch.equal(own_label_hidden(model, task, 3)[task.val], everything[task.val])


def test_a_training_node_is_predicted_with_its_fold_hidden_and_the_others_shown():
    task, model = task_and_model("enhanced")
    found, fold = own_label_hidden(model, task, 3), folds_of(task, 3)[task.train]
    for k in range(3):
        expected = logits_of(model, task, task.train[fold != k]).softmax(-1)
        assert torch.equal(found[task.train[fold == k]], expected[task.train[fold == k]])


@pytest.mark.parametrize("ids", [np.arange(6000), np.array([f"package-{i}" for i in range(6000)], dtype=object)])
def test_folds_follow_the_ids_and_are_of_about_equal_size(ids):
    fold = assign_folds(ids, 6)
    order = np.random.default_rng(0).permutation(len(ids))
    assert torch.equal(assign_folds(ids[order], 6), fold[torch.from_numpy(order)])
    sizes = torch.bincount(fold, minlength=6)
    # five deviations of a binomial around the thousand expected
    assert int((sizes - 1000).abs().max()) < 5 * (1000 * 5 / 6) ** 0.5


def test_the_accuracy_of_training_is_not_reported_where_nodes_saw_their_own_labels():
    task, model = task_and_model("enhanced")

    def accuracy(selection: bool) -> float:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        batching = FullBatch(model, task, Objective(selection=selection), optimizer, torch.Generator())
        return float(batching.train_epoch(1)["train_accuracy"])

    assert np.isnan(accuracy(selection=False))
    assert 0 <= accuracy(selection=True) <= 1
