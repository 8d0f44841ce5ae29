"""Nobody sees their own answer in the models that read labels in other ways than LEGNN's layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.named import model_settings
from tests.training.test_no_leak import HIDDEN, IN, cycle, own_label_hidden, relabel, tasks, training_forward

from legnn.baselines import ARCHITECTURES
from legnn.nn import DataShape, Model
from legnn.training import Task

KINDS = {
    "gcnii": {"backbone": "gcnii"},
    "appnp": {"backbone": "appnp"},
    "dagnn": {"backbone": "dagnn", "normalize": "joint"},
    **{name: {"architecture": name} for name in ("gcn_lpa", "label_highway", "boosted_trees", "metapath_labels")},
}
READ_IN_FORWARD = [name for name in KINDS if name != "gcn_lpa"]
"""GCN-LPA reads labels in its second loss alone."""


def model_for(kind: str, task: Task) -> Model:
    torch.manual_seed(0)
    options = {"hidden": HIDDEN, "layers": 2, "hops": 3, "trees": 3, "label_at_input": True, **KINDS[kind]}
    settings = model_settings(**options)
    shape = DataShape(IN, task.graph.num_classes, edges=task.graph.adjacency.num_edges)
    return ARCHITECTURES[settings.architecture](settings, shape)


def fit_trees(model: Model, task: Task) -> None:
    """Boosted trees say nothing before they are fitted; here to labels that stay as they are."""
    y = torch.arange(len(task.x)) % task.graph.num_classes
    nodes = torch.arange(len(task.x))
    if len(y.unique()) > 1:
        model.fit_labels(model.prepare(task.x), task.graph.show(nodes, y), nodes, y)


@pytest.mark.parametrize("kind", KINDS)
@given(task=tasks())
@settings(max_examples=8, deadline=None)
def test_in_training_a_predicted_nodes_logits_do_not_depend_on_its_label(kind, task):
    if kind == "boosted_trees" and len(task.y[task.train].unique()) < 2:
        return
    alpha = 1.0 if len(task.train) == 1 else 0.5
    before, predicted = training_forward(model_for(kind, task), task, alpha=alpha)
    for node in predicted.tolist():
        other = relabel(task, node)
        if kind == "boosted_trees" and len(other.y[task.train].unique()) < 2:
            continue
        after, _ = training_forward(model_for(kind, task), other, alpha=alpha)
        assert torch.equal(before[node], after[node])


@pytest.mark.parametrize("kind", KINDS)
@given(task=tasks(min_train=1), folds=st.integers(2, 10))
@settings(max_examples=8, deadline=None)
def test_in_evaluation_no_nodes_prediction_depends_on_its_label(kind, task, folds):
    model = model_for(kind, task)
    fit_trees(model, task)
    before = own_label_hidden(model, task, folds)
    for node in range(len(task.y)):
        assert torch.equal(before[node], own_label_hidden(model, relabel(task, node), folds)[node])


@pytest.mark.parametrize("kind", READ_IN_FORWARD)
def test_other_nodes_labels_do_reach_a_node_in_evaluation(kind):
    task = cycle(48)
    model = model_for(kind, task)
    fit_trees(model, task)
    before, after = (own_label_hidden(model, one, 6) for one in (task, relabel(task, 2)))
    assert (before - after)[[0, 1, 3, 4, 6]].abs().amax(1).gt(1e-6).any()


def test_label_propagation_of_gcn_lpa_reads_no_label_of_a_predicted_node():
    task = cycle()
    model = model_for("gcn_lpa", task)
    shown = task.train[::2]
    first, second = (model.auxiliary(None, one.show(shown))[1] for one in (task, relabel(task, 1)))
    assert torch.equal(first, second)
    assert not torch.equal(first, model.auxiliary(None, relabel(task, 2).show(shown))[1])
