"""Other rules of self-training: the surest of each class, and agreement with label propagation."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data
from tests.named import arguments, named
from tests.runs.test_resume import assert_same_run, stop_after
from tests.training.mini_batches import make, mini_batch
from tests.training.test_no_leak import relabel

import legnn
from legnn.config import SelfTrainingSettings, Settings
from legnn.datasets import load
from legnn.nn.reference import dense_blocks
from legnn.runs.build import make_rule
from legnn.training import Agreement, ASTrain, FullBatch, Objective, PseudoLabels, Task, TopK

RULES = {"top-k": {"per_class": 2}, "agreement": {"pseudo_label_threshold": 0.3}}
"""Settings under which some candidates of a small graph are chosen and some are not."""
BATCHES = {"full": {}, "joint": {"batch": 5, "fanout": "3"}}
BATCHES["separate"] = {**BATCHES["joint"], "pseudo_steps": "separate"}
QUICK = {"epochs": 6, "hidden": 8, "dropout": 0.5, "checkpoint_seconds": 0.0, "as_train": True}


def top_k(per_class: int, **options) -> TopK:
    return TopK(SelfTrainingSettings(as_train=True, pseudo_label_rule="top-k", per_class=per_class, **options))


def agreement(opinions: list[int], **options) -> Agreement:
    given = SelfTrainingSettings(as_train=True, pseudo_label_rule="agreement", **options)
    return Agreement(given, torch.tensor(opinions))


def chosen(pseudo: PseudoLabels) -> list[int]:
    return pseudo.nodes[pseudo.chosen].tolist()


# -- which candidates are chosen -----------------------------------------------------------------------------------


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.3, 0.5, 0.5001, 0.9])), max_size=20),
    per_class=st.integers(1, 5),
)
def test_the_surest_of_each_class_are_chosen_and_ties_go_by_position(rows, per_class):
    y = torch.tensor([c for c, _ in rows], dtype=torch.long)
    p = torch.tensor([value for _, value in rows])
    nodes = torch.arange(len(rows)) + 7
    found = top_k(per_class).select(nodes, y, p, 0.1)
    expected = []
    for c in range(5):
        members = [i for i, (label, _) in enumerate(rows) if label == c]
        expected += sorted(members, key=lambda i: (-rows[i][1], i))[:per_class]
    assert chosen(found) == [i + 7 for i in sorted(expected)]
    assert torch.equal(found.y, y)
    assert torch.equal(found.evaluating_confidence, p * found.chosen)


def test_top_k_needs_no_threshold_and_counts_by_ec_and_tc_as_ever():
    rule = top_k(1, pseudo_label_threshold=0.99, pseudo_label_weight=0.5)
    assert rule.may_select(1e-6)
    assert not rule.may_select(0.0)
    assert rule.loss_weight(0.2) == pytest.approx(0.1)
    assert chosen(rule.select(torch.arange(2), torch.tensor([0, 1]), torch.tensor([0.4, 0.5]), 0.01)) == [0, 1]
    plain = top_k(1, use_ec=False).select(torch.arange(2), torch.tensor([0, 0]), torch.tensor([0.4, 0.5]), 0.01)
    assert plain.evaluating_confidence.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("kind", [float, torch.tensor])
def test_agreement_needs_the_threshold_and_the_class_of_the_second_model(kind):
    rule = agreement([2, 0, 1, -1, 1], pseudo_label_threshold=0.5)
    nodes, y = torch.tensor([4, 3, 2, 1]), torch.tensor([1, 1, 1, 1])
    p = torch.tensor([0.9, 0.9, 0.6, 0.9])
    # node 3 has no second opinion, node 1 another one, and 0.6 · 0.7 is not over the threshold
    assert chosen(rule.select(nodes, y, p, kind(0.7))) == [4]
    assert chosen(rule.select(nodes, y, p, kind(1.0))) == [4, 2]
    assert not rule.may_select(0.5)


# -- in a run --------------------------------------------------------------------------------------------------------


def resolved(choose: str, **options):
    data = load(small_data())
    given = {**QUICK, **RULES.get(choose, {}), "pseudo_label_rule": choose, "source": "memory", **options}
    return data, Settings(values=named(**given)).resolve(data.facts())


def test_the_second_opinion_is_label_propagation_from_the_training_labels_written_out():
    data, given = resolved("agreement", **{"label_propagation.steps": 3}, **{"label_propagation.alpha": 0.8})
    task = Task.from_graph(data, torch.device("cpu"))
    rule = make_rule(make()[0], task, given)
    A = dense_blocks(task.graph, torch.float64)[0]
    scale = A.sum(1).clamp(min=1e-30) ** -0.5 * (A.sum(1) > 0)
    Y = torch.zeros(data.num_nodes, 3, dtype=A.dtype)
    Y[task.train, task.y[task.train]] = 1
    F = Y
    for _ in range(3):
        F = (0.8 * (scale[:, None] * A * scale) @ F + 0.2 * Y).clamp(0, 1)
    expected = F.argmax(1).where(F.sum(1) > 0, -1)
    clear = F.sort(1).values[:, 2] - F.sort(1).values[:, 1] > 1e-6
    assert isinstance(rule, Agreement)
    assert torch.equal(rule.opinions[clear], expected[clear])
    assert clear.sum() > 30


def test_the_settings_choose_the_rule():
    model, task = make()
    assert type(make_rule(model, task, resolved("top-k")[1])) is TopK
    assert type(make_rule(model, task, resolved("threshold")[1])) is ASTrain
    off = Settings(values=named(source="memory", as_train=False)).resolve(load(small_data()).facts())
    assert make_rule(model, task, off) is None


@pytest.mark.parametrize("choose", RULES)
@pytest.mark.parametrize("batches", BATCHES)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, choose, batches):
    given, data = (
        {**QUICK, **RULES[choose], **BATCHES[batches], "pseudo_label_rule": choose, "delta": 1.0},
        small_data(),
    )
    legnn.train(data, **arguments(**given), out=tmp_path / "whole")
    on_epoch, should_stop = stop_after(3)
    with pytest.raises(legnn.Interrupted):
        legnn.train(data, **arguments(**given), out=tmp_path / "cut", on_epoch=on_epoch, should_stop=should_stop)
    legnn.resume(tmp_path / "cut", data)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    logs = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").open()]
    numbers = [log["pseudo_labels"] for log in logs]
    assert max(numbers) > 0
    if choose == "top-k" and batches != "joint":
        assert max(numbers) <= 3 * 2, "at most two of each of three classes"


@pytest.mark.parametrize("choose", RULES)
def test_the_rules_differ_from_the_threshold(choose):
    def weights(rule: str) -> torch.Tensor:
        options = {**RULES[choose], "pseudo_label_rule": rule, "use_tc": False}
        run = legnn.train(small_data(), **arguments(**{**QUICK, **options}))
        return torch.cat([p.flatten() for p in run.model.parameters()])

    assert not torch.equal(weights(choose), weights("threshold"))


# -- nobody sees their own answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("choose", RULES)
@pytest.mark.parametrize("batches", BATCHES)
def test_the_labels_of_candidates_change_nothing(choose, batches):
    given = resolved(choose, use_tc=False)[1]

    def weights(change: bool) -> dict[str, torch.Tensor]:
        model, task = make()
        if change:
            for node in task.candidates.tolist():
                task = relabel(task, node) if task.y[node] >= 0 else task
        optimizer, rule = torch.optim.SGD(model.parameters(), lr=0.1), make_rule(model, task, given)
        if batches == "full":
            parts = FullBatch(model, task, Objective(rule=rule), optimizer, torch.Generator().manual_seed(1))
        else:
            parts = mini_batch(model, task, 4, [3, 3], optimizer, rule, pseudo_steps=batches)
        assert int(parts.train_epoch(1)["pseudo_labels"]) > 0
        parts.train_epoch(2)
        return model.state_dict()

    one, other = weights(False), weights(True)
    assert all(torch.equal(value, other[name]) for name, value in one.items())


@given(seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_the_second_opinion_follows_training_labels_and_no_others(seed):
    model, task = make()
    given = resolved("agreement")[1]
    node = int(torch.randint(len(task.candidates), (), generator=torch.Generator().manual_seed(seed)))
    other = replace(task, y=task.y.index_fill(0, task.candidates[node], 0))
    before, after = (make_rule(model, one, given).opinions for one in (task, other))
    assert torch.equal(before, after)
    assert not torch.equal(before, make_rule(model, relabel(task, int(task.train[0])), given).opinions)
