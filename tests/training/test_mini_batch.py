"""Mini-batches: the same model and loop on samples of neighbors."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backbones import WITH_LIFTED
from tests.baselines.peers import is_staged
from tests.training.mini_batches import full_batch, make, mini_batch, objective, watch_steps
from tests.training.test_no_leak import SEES_LABELS, models, relabel, tasks, typed
from tests.typed_graphs import small_hetero, with_tags

from legnn.config.training import fanouts_for, parse_fanout
from legnn.graph import sample_label_graph
from legnn.nn import StagedModel
from legnn.training import LayerWise, Task
from legnn.training.inference import to_class_and_confidence
from legnn.training.metrics import validation_metrics

CPU = torch.device("cpu")
USAGES = ["vanilla", "concat", "addition", "enhanced"]


@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", WITH_LIFTED)
def test_one_batch_with_all_neighbors_has_the_gradients_of_the_full_batch(backbone, labels):
    model, task = make(labels, backbone=backbone)
    whole = full_batch(model, task)
    step = whole.train_epoch(1)
    parts = mini_batch(model, task, 1000, [None] * 2)
    if labels == "vanilla":
        # nothing is selected there, so the full batch draws nothing
        torch.testing.assert_close(
            parts.train_epoch(1)["supervised_loss"], step["supervised_loss"], rtol=1e-5, atol=1e-6
        )
    else:
        again = parts.train_epoch(1)
        torch.testing.assert_close(again["supervised_loss"], step["supervised_loss"], rtol=1e-5, atol=1e-6)
        assert float(again["train_accuracy"]) == pytest.approx(float(step["train_accuracy"]))
    (one,), (other,) = parts.optimizer.seen, whole.optimizer.seen
    for name, gradient in other.items():
        torch.testing.assert_close(one[name], gradient, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_the_batches_of_an_epoch_have_nearly_equal_sizes_and_every_predicted_node_once(batch):
    model, task = make()
    parts = mini_batch(model, task, batch, [3, 2])
    steps = watch_steps(parts)
    parts.train_epoch(1)
    sizes, seen = [len(step.logits) for step in steps], torch.cat([step.predicted for step in steps]).tolist()
    count = len(task.train) // 2
    assert sum(sizes) == count == len(set(seen)) == len(seen)
    assert max(sizes) <= batch
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == math.ceil(count / batch) == len(parts.optimizer.seen)


def test_mini_batches_learn_what_the_full_batch_learns():
    model, task = make(nodes=200)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    parts = mini_batch(model, task, 16, [5, 5], optimizer)
    first = float(validation_metrics(parts.validate(task.train), task.val_y, "accuracy")["val_loss"])
    losses = [float(parts.train_epoch(epoch)["supervised_loss"]) for epoch in range(1, 31)]
    assert losses[-1] < 0.5 * losses[0]
    validation = validation_metrics(parts.validate(task.train), task.val_y, "accuracy")
    assert float(validation["val_loss"]) < first
    assert float(validation["val/accuracy"]) > 0.8


# -- several node types --------------------------------------------------------------------------------------------

TYPED = [*((labels, "one-hot") for labels in USAGES), ("enhanced", "class-mean")]


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize(("labels", "label_features"), TYPED)
def test_several_types_have_the_gradients_of_the_full_batch(labels, label_features, scale):
    model, task = make(labels, graph=with_tags(small_hetero()), label_features=label_features, feature_scale=scale)
    assert model.num_types == 3
    whole, parts = full_batch(model, task), mini_batch(model, task, 1000, [None] * 2)
    losses = [float(batching.train_epoch(1)["supervised_loss"]) for batching in (whole, parts)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    (one,), (other,) = parts.optimizer.seen, whole.optimizer.seen
    for name, gradient in other.items():
        torch.testing.assert_close(one[name], gradient, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
@pytest.mark.parametrize(("labels", "label_features"), TYPED)
def test_several_types_layer_by_layer_equal_the_full_batch(labels, label_features, chunk_size):
    model, task = make(labels, graph=with_tags(small_hetero()), label_features=label_features, feature_scale="standard")
    model.eval()
    shown = task.train if labels != "vanilla" else task.train[:0]
    with torch.no_grad():
        expected = model(model.prepare(task.x, node_type=task.node_type), task.show(shown))
    parts = LayerWise(model, task, CPU, torch.float32, chunk_size=chunk_size)
    for nodes in (torch.arange(len(task.x)), task.targets, task.val):
        found = parts.logits(shown, nodes)
        torch.testing.assert_close(found, expected[nodes], rtol=1e-4, atol=1e-5)
    whole = LayerWise(model, task, CPU, torch.float32)
    assert whole.is_at_once
    torch.testing.assert_close(whole.logits(shown, task.targets), expected[task.targets])


# -- nobody sees their own answer ----------------------------------------------------------------------------------


def seed_logits(model: StagedModel, task: Task, selection: bool) -> dict[int, torch.Tensor]:
    """What each predicted node gets in one epoch of training, by node."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    parts = mini_batch(model, task, 2, [2] * model.num_stages, torch.optim.SGD(model.parameters(), lr=0.0))
    parts.objective = objective(model, selection=selection, alpha=1.0 if len(task.train) == 1 else 0.5)
    steps = watch_steps(parts)
    parts.train_epoch(1)
    model.load_state_dict(state)
    return {int(node): row for step in steps for node, row in zip(step.predicted, step.logits, strict=True)}


@pytest.mark.parametrize("selection", [True, False])
@pytest.mark.parametrize("kind", ["vanilla", *(kind for kind in SEES_LABELS if kind in USAGES or is_staged(kind))])
@given(data=st.data(), task=tasks())
@settings(max_examples=10, deadline=None)
def test_a_seed_never_sees_its_own_label(kind, selection, data, task):
    task = typed(task, kind)
    # statistics over a batch of two would be all there is to see
    model = data.draw(models(task, kind, norm="layer"))
    before = seed_logits(model, task, selection)
    assert before
    for node, logits in before.items():
        after = seed_logits(model, relabel(task, node), selection)
        # in the batches after the first, the weights have not moved: the learning rate is zero
        assert torch.equal(logits, after[node])


def test_other_nodes_labels_do_reach_a_seed_so_the_property_says_something():
    model, task = make()
    shown = task.train[1:]
    seeds = task.train[:1]

    def logits(task: Task) -> torch.Tensor:
        sampled = sample_label_graph(task.show(shown), seeds, [None, None], (0, 0))
        with torch.no_grad():
            return model(model.prepare_rows(task.x[sampled.nodes]), sampled)

    moved = [float((logits(relabel(task, int(node))) - logits(task)).abs().max()) for node in shown]
    assert max(moved) > 1e-4


# -- layer-wise inference ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", USAGES)
@given(data=st.data(), task=tasks(min_train=1), chunk_size=st.sampled_from([1, 3, 1000]))
@settings(max_examples=12, deadline=None)
def test_layer_by_layer_equals_the_full_batch(labels, data, task, chunk_size):
    model = data.draw(models(task, labels)).eval()
    shown = task.train if labels != "vanilla" else task.train[:0]
    with torch.no_grad():
        whole = model(model.prepare(task.x), task.show(shown))
    nodes = torch.tensor(sorted(data.draw(st.sets(st.integers(0, len(task.x) - 1)))), dtype=torch.long)
    inference = LayerWise(model, task, CPU, torch.float32, chunk_size=chunk_size)
    torch.testing.assert_close(inference.logits(shown, nodes), whole[nodes], rtol=1e-4, atol=1e-5)


def test_a_graph_that_fits_is_computed_at_once_with_the_same_outcome():
    model, task = make(nodes=100)
    at_once = LayerWise(model, task, CPU, torch.float32)
    assert at_once.is_at_once
    parts = LayerWise(model, task, CPU, torch.float32, chunk_size=50)
    assert not parts.is_at_once
    nodes = torch.arange(100)
    one, other = (inference.logits(task.train, nodes, to_class_and_confidence) for inference in (at_once, parts))
    assert torch.equal(one[:, 0], other[:, 0])
    torch.testing.assert_close(one[:, 1], other[:, 1], rtol=1e-4, atol=1e-5)


def test_what_later_layers_do_not_need_is_not_computed():
    model, task = make(nodes=200, labels="vanilla")
    lonely = replace(task, val=task.val[:1])
    inference = LayerWise(model, lonely, CPU, torch.float32, chunk_size=50)
    seen = []
    model.encoder.register_forward_hook(lambda module, inputs, out: seen.append(out[0].size(0)))
    inference.logits(task.train[:0], lonely.val)
    assert 0 < sum(seen) < 200


# -- fan-outs ------------------------------------------------------------------------------------------------------


def test_fanouts_are_given_from_the_input_side():
    assert parse_fanout("15,10,5") == [15, 10, 5]
    assert parse_fanout("all, 3") == [None, 3]
    assert fanouts_for("4", 3) == [4, 4, 4]
    assert fanouts_for("15,10,5", 3) == [15, 10, 5]
    task = make()[1]
    sampled = sample_label_graph(task.graph, task.val[:1], [2, 1], (3, 4))
    assert (sampled.blocks[1].adjacency.rowptr[-1], int(sampled.blocks[1].num_nodes)) == (1, 1)
    assert int(sampled.blocks[0].adjacency.rowptr.diff().max()) == 2
