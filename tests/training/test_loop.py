"""The loop: early stopping, scores, and what happens when training diverges."""

import math
from contextlib import contextmanager

import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments, named
from tests.training.mini_batches import full_batch, make

import legnn
from legnn.errors import InputError, Interrupted
from legnn.notes import Note
from legnn.training.loop import EarlyStopping


def test_of_equally_accurate_epochs_the_one_with_the_smaller_loss_is_kept():
    stopper = EarlyStopping(patience=3)
    assert stopper.improves(1, 0.5, 1.0)
    assert stopper.improves(2, 0.5, 0.9)
    assert not stopper.improves(3, 0.5, 0.9), "an exact tie keeps the earlier epoch"
    assert not stopper.improves(4, 0.4, 0.1)
    assert stopper.improves(5, 0.6, 9.0)
    assert (stopper.best_epoch, stopper.best_score, stopper.best_loss) == (5, 0.6, 9.0)


def test_with_ties_latest_an_equally_accurate_epoch_is_better_and_patience_starts_anew():
    stopper = EarlyStopping(patience=3, ties="latest")
    assert stopper.improves(1, 0.5, 1.0)
    assert not stopper.improves(2, 0.4, 0.1)
    assert stopper.improves(3, 0.5, 9.0)
    assert not stopper.is_over(5)
    assert stopper.is_over(6)
    assert (stopper.best_epoch, stopper.best_loss) == (3, 9.0)


def test_a_run_keeps_the_epoch_that_its_ties_say():
    logs = []
    run = legnn.train(
        small_data(120), settings=named(ties="latest", epochs=60, hidden=8, patience=12, lr=0.05), on_epoch=logs.append
    )
    top = max(log.val["accuracy"] for log in logs)
    tied = [log.epoch for log in logs if log.val["accuracy"] == top]
    assert len(tied) > 1
    assert run.result.best_epoch == tied[-1]
    assert run.result.epochs == min(tied[-1] + 12, 60)


@pytest.mark.parametrize("choose_by", ["accuracy", "macro_f1", "roc_auc", "log_loss"])
def test_the_best_epoch_is_the_one_that_choose_by_says(choose_by):
    logs = []
    options = {"epochs": 40, "hidden": 8, "lr": 0.05, "patience": 40}
    run = legnn.train(small_data(120), **arguments(**options, choose_by=choose_by), on_epoch=logs.append)
    keys = {
        "accuracy": lambda log: (log.val["accuracy"], -log.val_loss),
        "macro_f1": lambda log: (log.val["macro_f1"], -log.val_loss),
        "roc_auc": lambda log: (log.val["roc_auc"], -log.val_loss),
        "log_loss": lambda log: (-log.val["log_loss"], -log.val_loss),
    }
    assert run.result.best_epoch == max(logs, key=keys[choose_by]).epoch
    assert run.settings.train.choose_by == choose_by


def test_epochs_chosen_by_loss_are_not_those_chosen_by_accuracy():
    found = set()
    for choose_by in ("accuracy", "log_loss"):
        found.add(legnn.train(small_data(120), choose_by=choose_by, epochs=40, hidden=8, lr=0.05).result.best_epoch)
    assert len(found) == 2


def test_a_score_over_a_split_that_lacks_a_class_says_so():
    data = small_data()
    data.test_mask &= data.y != 1
    text = "the test split has no nodes of 1 of 3 classes: 1."
    assert Note("missing-class", text) in legnn.train(data, epochs=2, hidden=8).result.notes
    assert not any(note.code == "missing-class" for note in legnn.train(small_data(), epochs=2, hidden=8).result.notes)


def test_training_stops_after_patience_epochs_without_a_better_one():
    stopper = EarlyStopping(patience=3)
    stopper.improves(4, 0.5, 1.0)
    assert [stopper.is_over(epoch) for epoch in (4, 5, 6, 7, 8)] == [False, False, False, True, True]


@pytest.mark.parametrize("epochs", [1, 50])
def test_a_run_that_diverges_names_the_settings_that_help(epochs):
    words = r"no longer a number in epoch \d+; a smaller `train.lr` \(now 1e\+30\) or `model.norm=layer`"
    with pytest.raises(InputError, match=words):
        legnn.train(small_data(), preset="simple", lr=1e30, epochs=epochs, hidden=8, layers=2)


def test_every_epoch_is_reported_once_and_in_order():
    logs = []
    run = legnn.train(small_data(), epochs=7, hidden=8, on_epoch=logs.append)
    assert [log.epoch for log in logs] == list(range(1, 8))
    assert run.result.epochs == 7
    assert all(log.loss == log.supervised_loss + log.pseudo_loss for log in logs)
    best = max(logs, key=lambda log: (log.val["accuracy"], -log.val_loss))
    assert run.result.best_epoch == best.epoch
    assert run.result.val["accuracy"] == best.val["accuracy"], "the best weights are those that are scored"


def test_the_graph_of_evaluation_is_the_same_object_in_every_epoch():
    model, task = make()
    batching, seen = full_batch(model, task), []
    model.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1]))
    for epoch in (1, 2, 3):
        batching.train_epoch(epoch)
        batching.validate(task.train)
    assert len({id(graph) for graph in seen[1::2]}) == 1, "what it caches is most of the work of building one"
    assert len({id(graph) for graph in seen[::2]}) == 3, "other nodes are selected in every epoch"


CALLERS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64": lambda: default_dtype(torch.float64),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def modes() -> tuple:
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
    )  # fmt: skip


@pytest.mark.parametrize("batch", ["full", 8])
@pytest.mark.parametrize("caller", CALLERS)
def test_a_run_trains_the_same_in_any_mode_of_the_caller_and_restores_it(caller, batch):
    options = {"epochs": 4, "hidden": 8, "layers": 2, "batch": batch, "as_train": True, "pseudo_label_threshold": 0.3}
    data = small_data()
    plain = legnn.train(data, **arguments(**options))
    with CALLERS[caller]():
        before = modes()
        run = legnn.train(data, **arguments(**options))
        assert modes() == before
    assert run.predictions.equals(plain.predictions)
    weights = plain.model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in run.model.state_dict().items())
    assert all(value.requires_grad for value in run.model.parameters())


def test_an_interrupted_run_that_goes_on_in_another_mode_of_the_caller_is_the_same(tmp_path):
    options = {"epochs": 6, "hidden": 8, "layers": 2}
    whole = legnn.train(small_data(), **arguments(**options))
    with pytest.raises(Interrupted):
        legnn.train(
            small_data(),
            **arguments(**options),
            out=tmp_path / "run",
            on_epoch=(logs := []).append,
            should_stop=lambda: len(logs) == 3,
        )
    with torch.no_grad():
        again = legnn.resume(tmp_path / "run", small_data())
    assert again.predictions.equals(whole.predictions)


def test_training_stops_early():
    run = legnn.train(small_data(), settings=named(epochs=500, patience=5, hidden=8))
    assert run.result.epochs == run.result.best_epoch + 5


def test_the_labels_of_test_nodes_do_not_change_a_run():
    data, other = small_data(), small_data()
    other.y[other.test_mask] = (other.y[other.test_mask] + 1) % 3
    first, second = (
        legnn.train(d, settings=named(epochs=5, hidden=8, as_train=True, pseudo_label_threshold=0.3), preset="simple")
        for d in (data, other)
    )
    weights = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)
    assert first.predictions.equals(second.predictions)
    assert first.result.test != second.result.test


def test_training_learns_something():
    run = legnn.train(small_data(nodes=120), epochs=60, hidden=16, lr=0.02)
    assert run.result.test["accuracy"] > 0.6
    assert math.isfinite(run.result.seconds)
