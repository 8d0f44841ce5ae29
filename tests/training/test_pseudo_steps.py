"""AS-Train in mini-batches: both losses in every step, or steps of their own for pseudo labels."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.mini_batches import full_batch, make, mini_batch, watch_steps
from tests.training.test_no_leak import models, relabel, tasks

from legnn.config import SelfTrainingSettings
from legnn.nn import LEGNN
from legnn.training import ASTrain, Task
from legnn.training.batches import draw_nodes

ALL = [None, None]
THRESHOLDS = [("gcn", 0.42), ("sage", 0.37), ("gat", 0.51)]
"""At which about half of the candidates are chosen at first."""


def as_train(**options) -> ASTrain:
    return ASTrain(
        SelfTrainingSettings(**{"pseudo_label_threshold": 0.38, "delta": 0.1, "pseudo_label_weight": 0.7, **options})
    )


def sgd(model: LEGNN) -> torch.optim.SGD:
    # Adam would divide a gradient that is zero but for rounding by its own size
    return torch.optim.SGD(model.parameters(), lr=0.1)


def shown_in(task: Task, predicted: torch.Tensor) -> torch.Tensor:
    """The training nodes that show their labels while `predicted` are predicted."""
    return task.train[~torch.isin(task.train, predicted)]


def supervised_written_out(logits: torch.Tensor, task: Task, predicted: torch.Tensor) -> torch.Tensor:
    p = logits.softmax(-1)
    return sum(-p[i, task.y[i]].log() for i in predicted.tolist()) / len(predicted)


def chosen_written_out(logits: torch.Tensor, nodes: list[int], rule: ASTrain, epoch: int) -> list[int]:
    p = logits.detach().softmax(-1)
    return [i for i in nodes if float(p[i].max()) * rule.confidence(epoch) > rule.settings.pseudo_label_threshold]


def pseudo_written_out(
    logits: torch.Tensor, chosen: list[int], weights: torch.Tensor, rule: ASTrain, epoch: int
) -> torch.Tensor:
    """`λ TC` times the mean of `EC_i CE_i`; `weights` are the probabilities from which the labels were chosen."""
    losses = [weights[i].max() * -logits[i].log_softmax(-1)[weights[i].argmax()] for i in chosen]
    return rule.settings.pseudo_label_weight * rule.confidence(epoch) * sum(losses) / max(len(chosen), 1)


# -- joint ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backbone", "threshold"), THRESHOLDS)
def test_one_step_with_all_neighbors_and_all_candidates_is_the_epoch_of_the_full_batch(backbone, threshold):
    found = []
    for build in (full_batch, lambda *args, **options: mini_batch(*args[:2], 1000, ALL, *args[2:], **options)):
        model, task = make(backbone=backbone)
        metrics = build(model, task, sgd(model), rule=as_train(pseudo_label_threshold=threshold)).train_epoch(1)
        assert 0 < int(metrics["pseudo_labels"]) < len(task.candidates), "some are chosen and some are not"
        found.append((model.state_dict(), torch.stack([value.double() for value in metrics.values()])))
    (weights, metrics), (others, their_metrics) = found
    for name, value in weights.items():
        torch.testing.assert_close(others[name], value, rtol=1e-5, atol=1e-6, msg=name)
    torch.testing.assert_close(their_metrics, metrics, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@given(data=st.data(), task=tasks(), batch=st.integers(1, 5), threshold=st.floats(0.3, 0.7))
@settings(max_examples=6, deadline=None)
def test_the_loss_of_a_joint_step_is_the_papers_written_out(labels, data, task, batch, threshold):
    model = data.draw(models(task, labels, norm="layer"))
    rule = as_train(pseudo_label_threshold=threshold)
    parts = mini_batch(model, task, batch, [None] * len(model.layers), rule=rule)
    if len(task.train) == 1:
        return
    steps = watch_steps(parts)
    metrics = parts.train_epoch(1)
    parts.reset()
    predicted = torch.cat([step.predicted for step in steps])
    graph = task.show(shown_in(task, predicted) if model.uses_labels else task.train[:0])
    pseudo_losses, number = [], 0
    for step, gradients in zip(steps, parts.optimizer.seen, strict=True):
        logits = model(model.prepare(task.x), graph)
        nodes = step.candidates.tolist()
        p = logits.detach().softmax(-1).max(-1).values
        if any(abs(float(p[i]) * rule.confidence(1) - threshold) < 1e-5 for i in nodes):
            return  # rounding decides
        chosen = chosen_written_out(logits, nodes, rule, 1)
        pseudo = pseudo_written_out(logits, chosen, logits.detach().softmax(-1), rule, 1)
        loss = supervised_written_out(logits, task, step.predicted) + pseudo
        model.zero_grad()
        loss.backward()
        for name, parameter in model.named_parameters():
            expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(gradients[name], expected, rtol=1e-3, atol=1e-5, msg=name)
        pseudo_losses.append(float(pseudo))
        number += len(chosen)
    assert int(metrics["pseudo_labels"]) == number
    assert float(metrics["pseudo_loss"]) == pytest.approx(sum(pseudo_losses) / len(steps), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("batch", [2, 5, 1000])
def test_candidates_are_shared_out_over_the_steps_and_those_left_over_get_their_turn(batch):
    model, task = make()
    parts = mini_batch(model, task, batch, [2, 2], rule=as_train())
    drawn = set()
    for epoch in range(1, 31):
        steps = watch_steps(parts)
        parts.train_epoch(epoch)
        del parts._forward  # the method of the class again
        count = math.ceil(len(task.train) // 2 / batch)
        assert len(steps) == count
        sizes = [len(step.candidates) for step in steps]
        assert max(sizes) <= batch
        assert max(sizes) - min(sizes) <= 1
        nodes = torch.cat([step.candidates for step in steps]).tolist()
        assert len(nodes) == len(set(nodes)) == min(len(task.candidates), count * batch)
        drawn.update(nodes)
    assert drawn == set(task.candidates.tolist())


@given(size=st.integers(0, 40), count=st.integers(0, 50), seed=st.integers(0, 1000))
def test_as_many_nodes_are_drawn_as_there_are_or_are_asked_for_and_each_once(size, count, seed):
    nodes = torch.arange(size) * 3
    drawn = draw_nodes(nodes, count, torch.Generator().manual_seed(seed))
    assert len(drawn) == len(set(drawn.tolist())) == min(size, count)
    assert set(drawn.tolist()) <= set(nodes.tolist())


@pytest.mark.parametrize("count", [2, 5])
def test_every_node_is_drawn_equally_often_at_every_place(count):
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([draw_nodes(torch.arange(8), count, generator) for _ in range(4000)])
    for place in draws.unbind(1):
        # five deviations of a binomial around the 500 expected
        assert int((torch.bincount(place, minlength=8) - 500).abs().max()) < 5 * (500 * 7 / 8) ** 0.5


@pytest.mark.parametrize("pseudo_steps", ["joint", "separate"])
def test_while_nobody_can_pass_no_candidate_is_sampled(pseudo_steps):
    rule = as_train(pseudo_label_threshold=0.6, delta=5.0)
    computed = []
    for one in (rule, None):
        model, task = make()
        parts = mini_batch(model, task, 4, [2, 2], sgd(model), one, pseudo_steps=pseudo_steps)
        sizes = []
        model.register_forward_hook(lambda module, inputs, out, sizes=sizes: sizes.append(len(out)))
        # TC is 7 / 12 in epoch 7
        metrics = [parts.train_epoch(epoch) for epoch in range(1, 8)]
        computed.append((sizes, model.state_dict()))
        if one is rule:
            assert [int(step["pseudo_labels"]) for step in metrics] == [0] * 7
            assert [float(step["pseudo_loss"]) for step in metrics] == [0] * 7
            assert all(math.isnan(step["pseudo_label_accuracy"]) for step in metrics)
    assert computed[0][0] == computed[1][0]
    assert all(torch.equal(value, computed[1][1][name]) for name, value in computed[0][1].items())


@pytest.mark.parametrize("pseudo_steps", ["joint", "separate"])
def test_where_nobody_passes_there_is_no_step_of_pseudo_labels_and_no_crash(pseudo_steps):
    model, task = make()
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.zero_()
    parts = mini_batch(model, task, 4, [3, 3], rule=as_train(pseudo_label_threshold=0.6), pseudo_steps=pseudo_steps)
    step = parts.train_epoch(1)
    assert int(step["pseudo_labels"]) == 0
    assert float(step["pseudo_loss"]) == 0
    assert len(parts.optimizer.seen) == math.ceil(len(task.train) // 2 / 4)


def test_pseudo_labels_are_chosen_from_the_forward_pass_of_the_step_itself_dropout_and_all():
    model, task = make(dropout=0.6)
    rule = as_train(pseudo_label_threshold=0.42)
    parts = mini_batch(model, task, 5, [3, 3], sgd(model), rule)
    steps = watch_steps(parts)
    metrics = parts.train_epoch(1)
    number = known = right = 0
    for step in steps:
        p, guess = F.softmax(step.logits[len(step.predicted) :], -1).max(-1)
        chosen = p * rule.confidence(1) > 0.42
        truth = task.y[step.candidates]
        number += int(chosen.sum())
        known += int((chosen & (truth >= 0)).sum())
        right += int((chosen & (guess == truth)).sum())
    assert 0 < number < sum(len(step.candidates) for step in steps)
    assert int(metrics["pseudo_labels"]) == number
    assert float(metrics["pseudo_label_accuracy"]) == pytest.approx(right / known)


# -- separate ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [3, 1000])
@pytest.mark.parametrize(("backbone", "threshold"), THRESHOLDS)
def test_separate_steps_are_those_of_a_plain_loop(backbone, threshold, batch):
    model, task = make(backbone=backbone)
    plain = copy.deepcopy(model)
    rule = as_train(pseudo_label_threshold=threshold)
    parts = mini_batch(model, task, batch, ALL, sgd(model), rule, pseudo_steps="separate")
    steps, optimizer = watch_steps(parts), sgd(plain)

    def take(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for epoch in (1, 2):
        steps.clear()
        metrics = parts.train_epoch(epoch)
        first = [step for step in steps if len(step.predicted)]
        second = steps[len(first) :]
        graph = task.show(shown_in(task, torch.cat([step.predicted for step in first])))
        for step in first:
            take(supervised_written_out(plain(plain.prepare(task.x), graph), task, step.predicted))
        with torch.no_grad():
            logits = plain(plain.prepare(task.x), graph)
        chosen = chosen_written_out(logits, task.candidates.tolist(), rule, epoch)
        assert 0 < len(chosen) < len(task.candidates)
        assert sorted(torch.cat([step.candidates for step in second]).tolist()) == chosen
        assert len(second) == math.ceil(len(chosen) / batch)
        losses = []
        for step in second:
            now = plain(plain.prepare(task.x), graph)
            losses.append(pseudo_written_out(now, step.candidates.tolist(), logits.softmax(-1), rule, epoch))
            take(losses[-1])
        truth = task.y[chosen]
        right = (logits[chosen].argmax(-1) == truth)[truth >= 0]
        assert int(metrics["pseudo_labels"]) == len(chosen)
        assert float(metrics["pseudo_label_accuracy"]) == pytest.approx(float(right.float().mean()))
        assert float(metrics["pseudo_loss"]) == pytest.approx(float(sum(losses)) / len(losses), rel=1e-3)
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4, msg=name)


def test_candidates_are_predicted_in_training_mode_over_sampled_neighbors():
    model, task = make(dropout=0.6)
    parts = mini_batch(model, task, 6, [2, 1], rule=as_train(), pseudo_steps="separate")
    passes = []

    def note(module, inputs, out) -> None:
        fewest = max(int(block.adjacency.rowptr.diff().max()) for block in inputs[1].blocks)
        passes.append((module.training, out.requires_grad, fewest <= 2))

    model.register_forward_hook(note)
    parts.train_epoch(1)
    assert all(training and sampled for training, _, sampled in passes)
    without_gradient = [not with_gradient for _, with_gradient, _ in passes]
    assert sum(without_gradient) == math.ceil(len(task.candidates) / 6)


# -- nobody sees their own answer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pseudo_steps", ["joint", "separate"])
@pytest.mark.parametrize("selection", [True, False])
def test_the_labels_of_candidates_change_nothing(selection, pseudo_steps):
    def weights(change: bool) -> dict[str, torch.Tensor]:
        model, task = make()
        if change:
            for node in task.candidates.tolist():
                task = relabel(task, node) if task.y[node] >= 0 else task
        parts = mini_batch(model, task, 4, [3, 3], sgd(model), as_train(), pseudo_steps=pseudo_steps)
        parts.objective = copy.copy(parts.objective)
        object.__setattr__(parts.objective, "selection", selection)
        assert int(parts.train_epoch(1)["pseudo_labels"]) > 0
        parts.train_epoch(2)
        return model.state_dict()

    one, other = weights(False), weights(True)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
