"""The objective: the paper's confidences, plain threshold self-training where both are off, and other rules."""

import json
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight
from tests.graphs import small_data
from tests.named import arguments, model_settings

import legnn
from legnn.config import SelfTrainingSettings
from legnn.datasets import load
from legnn.graph import SamplingOptions, select_training_nodes
from legnn.nn import LEGNN
from legnn.training import (
    ASTrain,
    FullBatch,
    MiniBatch,
    Objective,
    PseudoLabels,
    Task,
    training_confidence,
)
from legnn.training.objective import Candidates, StepLosses, balanced_class_weight

CPU = torch.device("cpu")


@given(epoch=st.integers(1, 10_000), delta=st.floats(0.01, 1000))
def test_the_training_confidence_is_the_papers(epoch, delta):
    paper = 1 / (1 + math.exp(-math.log(epoch / delta)))
    assert training_confidence(epoch, delta) == pytest.approx(paper, rel=1e-9)


def test_the_training_confidence_grows_from_near_zero_to_one_and_is_half_at_delta():
    values = [training_confidence(epoch, 10) for epoch in range(1, 2000)]
    assert values == sorted(values)
    assert values[9] == 0.5
    assert 0 < values[0] < 0.1
    assert 0.99 < values[-1] < 1


def as_train(**settings) -> ASTrain:
    return ASTrain(SelfTrainingSettings(**settings))


def logits_of(*probabilities: float) -> torch.Tensor:
    """Two classes, the second with these probabilities."""
    p = torch.tensor(probabilities, dtype=torch.float64)
    return torch.stack([(1 - p).log(), p.log()], 1)


def chosen(pseudo: PseudoLabels) -> list[int]:
    """The nodes that got a pseudo label."""
    return pseudo.nodes[pseudo.chosen].tolist()


def choose(rule: ASTrain, logits: torch.Tensor, candidates: torch.Tensor, confidence) -> PseudoLabels:
    """The pseudo labels of `candidates` by their logits."""
    p, y = torch.softmax(logits.detach()[candidates].float(), -1).max(-1)
    return rule.select(candidates, y, p, confidence)


def losses(rule: ASTrain, logits: torch.Tensor, candidates: torch.Tensor, confidence: float) -> StepLosses:
    """The losses of a step that predicts node 0, whose class is 0."""
    others = Candidates(candidates, logits[candidates], torch.zeros_like(candidates))
    return Objective(rule=rule).losses(logits[:1], torch.tensor([0]), others, confidence)


def test_a_pseudo_label_needs_more_than_the_threshold():
    logits = torch.zeros(1, 2)  # p is exactly one half
    everyone = torch.tensor([0])
    assert chosen(choose(as_train(pseudo_label_threshold=0.5), logits, everyone, 1.0)) == []
    assert chosen(choose(as_train(pseudo_label_threshold=0.4999), logits, everyone, 1.0)) == [0]


@pytest.mark.parametrize("kind", [float, torch.tensor])
@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=10), st.floats(0.05, 1), st.floats(0.1, 0.9))
def test_a_candidate_is_confident_when_its_probability_times_tc_is_over_the_threshold(kind, p, confidence, threshold):
    logits = logits_of(*p).float()
    candidates = torch.arange(0, len(p), 2)
    pseudo = choose(as_train(pseudo_label_threshold=threshold), logits, candidates, kind(confidence))
    largest, predicted = torch.softmax(logits, -1).max(-1)
    expected = [i for i in candidates.tolist() if float(largest[i] * confidence) > threshold]
    # a product that equals the threshold but for rounding may fall on either side
    close = {i for i in candidates.tolist() if abs(float(largest[i]) * confidence - threshold) < 1e-6}
    assert set(chosen(pseudo)) ^ set(expected) <= close
    assert int(pseudo.number) == len(chosen(pseudo))
    # every candidate has a row, and one that is not chosen counts nothing
    assert torch.equal(pseudo.nodes, candidates)
    assert torch.equal(pseudo.y, predicted[candidates])
    assert torch.equal(pseudo.evaluating_confidence, largest[candidates].where(pseudo.chosen, torch.tensor(0.0)))


def test_without_ec_every_pseudo_label_counts_one_and_nobody_else_counts():
    pseudo = choose(as_train(use_ec=False), logits_of(0.9, 0.6, 0.99), torch.arange(3), 1.0)
    assert pseudo.evaluating_confidence.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("use_ec", [False, True])
def test_the_loss_is_lambda_tc_times_the_mean_of_ec_times_cross_entropy(use_ec):
    logits = logits_of(0.5, 0.9, 0.6, 0.05).requires_grad_()
    rule = as_train(pseudo_label_threshold=0.2, pseudo_label_weight=0.5, use_ec=use_ec)
    found = losses(rule, logits, torch.tensor([1, 2, 3]), 0.25)
    # 0.6 of a quarter is not more than the threshold: nodes 1 and 3 are chosen
    ec = (0.9, 0.95) if use_ec else (1.0, 1.0)
    by_hand = 0.5 * 0.25 * -(ec[0] * math.log(0.9) + ec[1] * math.log(0.95)) / 2
    assert found.pseudo.item() == pytest.approx(by_hand, rel=1e-6)
    assert found.supervised.item() == pytest.approx(math.log(2))
    # one of the two is right: node 3, for the truth of all candidates is class 0
    counts = ("pseudo_labels", "known_pseudo_labels", "right_pseudo_labels")
    assert [int(found.sums[name]) for name in counts] == [2, 2, 1]


def test_a_candidate_that_is_not_chosen_gets_no_gradient():
    logits = logits_of(0.9, 0.6, 0.99).float().requires_grad_()
    losses(
        as_train(pseudo_label_threshold=0.7, pseudo_label_weight=1.0), logits, torch.arange(3), 1.0
    ).pseudo.backward()
    assert logits.grad.abs().sum(1).gt(0).tolist() == [True, False, True]


def test_no_pseudo_labels_cost_nothing_and_give_no_nan():
    logits = torch.randn(5, 3, requires_grad=True)
    found = losses(as_train(pseudo_label_threshold=0.99), logits, torch.arange(5), 0.01)
    assert (int(found.sums["pseudo_labels"]), found.pseudo.item()) == (0, 0)
    found.pseudo.backward()
    assert logits.grad.tolist() == torch.zeros(5, 3).tolist()


def test_pseudo_labels_carry_no_gradient_of_their_own():
    seen = []

    class Watched(ASTrain):
        def select(self, *values) -> PseudoLabels:
            seen.append(super().select(*values))
            return seen[0]

    losses(
        Watched(SelfTrainingSettings(pseudo_label_threshold=0.01)),
        torch.randn(4, 3, requires_grad=True),
        torch.arange(4),
        1.0,
    )
    assert int(seen[0].number) == 4
    assert not seen[0].evaluating_confidence.requires_grad


def make(labels: str = "enhanced", **options) -> tuple[LEGNN, Task]:
    data = load(small_data())
    torch.manual_seed(0)
    settings = model_settings(labels=labels, hidden=8, layers=2, dropout=0.4, input_dropout=0.2, **options)
    return LEGNN(data.x.size(1), 3, settings), Task.from_graph(data, CPU)


def batching(model: LEGNN, task: Task, rule: ASTrain | None, lr: float = 0.01) -> FullBatch:
    objective = Objective(uses_labels=model.uses_labels, rule=rule)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    return FullBatch(model, task, objective, optimizer, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@given(threshold=st.floats(0.2, 0.5), weight=st.floats(0.1, 2))
@settings(max_examples=10, deadline=None)
def test_without_tc_and_ec_an_epoch_equals_threshold_self_training_written_out(labels, threshold, weight):
    model, task = make(labels)
    rule = as_train(pseudo_label_threshold=threshold, pseudo_label_weight=weight, use_tc=False, use_ec=False)
    trainer = batching(model, task, rule, lr=0.05)
    torch.manual_seed(5)
    counts = [int(trainer.train_epoch(epoch)["pseudo_labels"]) for epoch in (1, 2, 3)]

    plain, task = make(labels)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(5)
    sure_counts = []
    for _ in range(3):
        plain.train()
        predicted, shown = task.train, task.train[:0]
        if labels != "vanilla":
            predicted, shown = select_training_nodes(task.train, 0.5, generator)
        logits = plain(plain.scale(task.x), task.graph.show(shown, task.y[shown]))
        loss = F.cross_entropy(logits[predicted], task.y[predicted])
        p, guess = F.softmax(logits.detach(), -1).max(-1)
        unlabeled = torch.ones(len(task.y), dtype=torch.bool)
        unlabeled[task.train] = False
        sure = unlabeled & (p > threshold)
        if sure.any():
            loss = loss + weight * F.cross_entropy(logits[sure], guess[sure])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sure_counts.append(int(sure.sum()))

    assert counts == sure_counts
    if threshold < 1 / 3:  # the largest of three probabilities is never less
        assert counts == [len(task.candidates)] * 3
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=name)


def test_with_tc_and_ec_the_step_is_another_one_so_the_ablation_says_something():
    def after(**options) -> torch.Tensor:
        model, task = make()
        torch.manual_seed(5)
        step = batching(model, task, as_train(pseudo_label_threshold=0.01, delta=1.0, **options)).train_epoch(1)
        assert step["pseudo_labels"] == len(task.candidates)
        return step["pseudo_loss"]

    losses = [float(after(use_tc=tc, use_ec=ec)) for tc in (False, True) for ec in (False, True)]
    assert len(set(losses)) == 4
    assert losses[2] == pytest.approx(losses[0] / 2)  # TC is one half at epoch δ
    assert losses[1] < losses[0]


def test_without_as_train_there_are_no_pseudo_labels():
    model, task = make()
    step = batching(model, task, None).train_epoch(1)
    assert math.isnan(step["pseudo_labels"])
    assert math.isnan(step["pseudo_label_accuracy"])
    assert float(step["pseudo_loss"]) == 0
    logs = []
    legnn.train(small_data(), as_train=False, epochs=1, hidden=8, on_epoch=logs.append)
    assert (logs[0].pseudo_labels, logs[0].training_confidence, logs[0].pseudo_label_accuracy) == (None, None, None)


class MostProbable:
    """Another rule: a pseudo label for the `count` most probable candidates, all of which count alike."""

    def __init__(self, count: int) -> None:
        self.count = count

    def confidence(self, epoch: int) -> float:
        return 1.0

    def may_select(self, confidence: float) -> bool:
        return True

    def select(self, nodes, y, p, confidence) -> PseudoLabels:
        chosen = torch.zeros_like(p, dtype=torch.bool).index_fill(0, p.topk(min(self.count, len(p))).indices, True)
        return PseudoLabels(nodes, y, chosen, chosen.to(p.dtype))

    def loss_weight(self, confidence):
        return 0.3


def test_another_rule_is_one_class_and_serves_full_batches_and_mini_batches():
    model, task = make()
    full = batching(model, task, MostProbable(5)).train_epoch(1)
    model, task = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    objective = Objective(rule=MostProbable(5))
    generator = torch.Generator().manual_seed(1)
    mini = MiniBatch(
        model, task, objective, optimizer, generator, batch=4, sampling=SamplingOptions([3, 3])
    ).train_epoch(1)
    # a step chooses among its own candidates, of which it has at most four
    steps = math.ceil(len(task.train) // 2 / 4)
    assert int(full["pseudo_labels"]) == 5
    assert int(mini["pseudo_labels"]) == min(4 * steps, len(task.candidates))
    for metrics in (full, mini):
        assert 0 < float(metrics["pseudo_loss"]) < 0.3 * math.log(3)


def test_candidates_are_all_but_the_training_nodes_or_only_those_in_no_split():
    data = load(small_data())
    unlabeled = Task.from_graph(data, CPU, candidates="unlabeled")
    assert sorted(unlabeled.candidates.tolist() + unlabeled.train.tolist()) == list(range(40))
    unsplit = Task.from_graph(data, CPU, candidates="unsplit")
    masks = data.train_mask | data.val_mask | data.test_mask
    assert unsplit.candidates.tolist() == (~masks).nonzero().flatten().tolist()
    assert 0 < len(unsplit.candidates) < len(unlabeled.candidates)


def test_a_pseudo_label_is_given_to_candidates_alone():
    model, task = make()
    trainer = batching(model, task, as_train(pseudo_label_threshold=0.01, use_tc=False))
    assert trainer.train_epoch(1)["pseudo_labels"] == len(task.candidates)


def test_right_pseudo_labels_are_counted_among_those_whose_truth_is_known():
    y = torch.tensor([0, 1, 2, 2, -1, -1, 1])
    nodes = torch.arange(7)
    guess = torch.tensor([0, 1, 2, 0, 0, 1, 1])
    chosen = torch.tensor([True, True, True, True, True, True, False])
    pseudo = PseudoLabels(nodes, guess, chosen, chosen.float())
    # right, right, right, wrong; two unknown; one right that was not chosen

    def counts(labels):
        counted = labels.counts(y)
        return int(counted["known_pseudo_labels"]), int(counted["right_pseudo_labels"])

    assert counts(pseudo) == (4, 3)
    assert counts(pseudo._replace(chosen=chosen & (y < 0))) == (0, 0)


def test_where_no_truth_is_known_the_accuracy_of_pseudo_labels_is_null_in_the_journal(tmp_path):
    def journal(**options) -> list[dict]:
        legnn.train(
            small_data(), **arguments(**options, epochs=3, hidden=8, as_train=True), out=tmp_path / str(len(options))
        )
        lines = (tmp_path / str(len(options)) / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line, parse_constant=pytest.fail) for line in lines]

    # nodes in no split have no label in this graph
    unknown = journal(pseudo_label_threshold=0.01, use_tc=False, pseudo_label_nodes="unsplit")
    assert [log["pseudo_label_accuracy"] for log in unknown] == [None] * 3
    assert [type(log["pseudo_labels"]) for log in unknown] == [int] * 3
    assert all(log["pseudo_labels"] > 0 for log in unknown)
    known = journal(pseudo_label_threshold=0.01, use_tc=False)
    assert all(0 <= log["pseudo_label_accuracy"] <= 1 for log in known)


# --- class weights ---------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_balanced_class_weights_are_those_of_scikit_learn_for_the_classes_that_occur(labels):
    y = torch.tensor(labels)
    occurs = torch.unique(y)
    expected = compute_class_weight("balanced", classes=occurs.numpy(), y=y.numpy())
    found = balanced_class_weight(y, 6)
    torch.testing.assert_close(found[occurs].double(), torch.from_numpy(expected), check_dtype=False)
    assert found.sum() == pytest.approx(float(found[occurs].sum())), "a class that does not occur has no weight"


def test_the_balanced_supervised_loss_is_the_mean_over_classes_of_their_means():
    y = torch.tensor([0] * 7 + [1] * 2 + [3])
    logits = torch.randn(10, 4, dtype=torch.double)
    objective = Objective(class_weight=balanced_class_weight(y, 4).double())
    each = F.cross_entropy(logits, y, reduction="none")
    expected = torch.stack([each[y == c].mean() for c in (0, 1, 3)]).mean()
    torch.testing.assert_close(objective.losses(logits, y, None, 1.0).supervised, expected)
    plain = Objective().losses(logits, y, None, 1.0).supervised
    torch.testing.assert_close(plain, each.mean())


def test_pseudo_labels_are_not_weighted_by_their_class():
    y = torch.tensor([0, 0, 0, 1])
    logits, candidates = torch.randn(4, 2), Candidates(torch.arange(5), torch.randn(5, 2), torch.zeros(5).long())
    rule = as_train(pseudo_label_threshold=0.01)
    found = [
        Objective(rule=rule, class_weight=weight).losses(logits, y, candidates, 1.0)
        for weight in (None, balanced_class_weight(y, 2))
    ]
    assert found[0].supervised != found[1].supervised
    assert torch.equal(found[0].pseudo, found[1].pseudo)


@pytest.mark.parametrize("batch", ["full", 8])
def test_runs_train_with_balanced_classes(batch):
    data = small_data()
    # three in four training nodes of the last class lose their split
    last = (data.train_mask & (data.y == 2)).nonzero().flatten()
    data.train_mask[last[len(last) // 4 :]] = False
    options = {"batch": batch, "epochs": 3, "hidden": 8, "seed": 1}
    balanced, plain = (
        legnn.train(data, **arguments(**options, class_weights=weights)) for weights in ("balanced", "none")
    )
    assert balanced.result.epochs == 3
    assert not balanced.predict_proba().equals(plain.predict_proba())
