"""The learning rate, by epochs and by the steps of the optimizer."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data
from tests.named import arguments, named
from tests.training.mini_batches import make, mini_batch

import legnn
from legnn.config import SelfTrainingSettings
from legnn.training import ASTrain, Trainer
from legnn.training.optimizer import FLOOR, cosine_lr


@given(length=st.integers(1, 3000), lr=st.floats(1e-5, 1))
@settings(max_examples=50)
def test_the_learning_rate_falls_and_never_rises_again(length, lr):
    rates = [cosine_lr(done, length, lr) for done in range(2 * length + 1)]
    assert rates[0] == pytest.approx(lr)
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(rates))
    assert rates[length:] == pytest.approx([lr * FLOOR] * (length + 1))


def test_half_way_the_learning_rate_is_half_way_down():
    assert cosine_lr(50, 100, 1.0) == pytest.approx((1 + FLOOR) / 2)


def written_out(k: int, steps: int, lr: float) -> float:
    return lr / 100 + (lr - lr / 100) * (1 + math.cos(math.pi * min(k, steps) / steps)) / 2


class WatchedAdam(torch.optim.Adam):
    """Keeps the learning rate of every step."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.rates: list[float] = []

    def step(self, closure=None):
        self.rates.append(self.param_groups[0]["lr"])
        return super().step(closure)


@pytest.mark.parametrize("pseudo_steps", ["joint", "separate"])
def test_by_steps_every_step_has_a_rate_of_its_own_those_of_pseudo_labels_too(pseudo_steps):
    model, task = make()
    optimizer = WatchedAdam(model.parameters(), lr=0.5)
    rule = ASTrain(SelfTrainingSettings(pseudo_label_threshold=0.3, delta=0.1))
    parts = mini_batch(model, task, 4, [2, 2], optimizer, rule, pseudo_steps=pseudo_steps)
    trainer, logs = Trainer(parts, lr=0.02, epochs=4, patience=4, cosine_steps=9), []
    trainer.fit(lambda log: logs.append((log.lr, len(optimizer.rates))) or False)
    steps = len(optimizer.rates)
    per_epoch = math.ceil(len(task.train) // 2 / 4)
    assert steps == 4 * per_epoch if pseudo_steps == "joint" else steps > 4 * per_epoch
    assert steps > 9
    assert optimizer.rates == pytest.approx([written_out(k, 9, 0.02) for k in range(steps)])
    assert [lr for lr, _ in logs] == [optimizer.rates[count - 1] for _, count in logs], "that of the last step"
    assert trainer.state()[1]["steps"] == steps


def test_in_the_full_batch_a_step_is_an_epoch():
    logs = []
    legnn.train(small_data(), settings=named(epochs=9, hidden=8, lr=0.01, cosine_steps=5), on_epoch=logs.append)
    assert [log.lr for log in logs] == pytest.approx([written_out(k, 5, 0.01) for k in range(9)])


@pytest.mark.parametrize("options", [{}, {"batch": 3, "fanout": "2"}])
def test_by_epochs_all_steps_of_an_epoch_have_one_rate(options):
    logs = []
    given = {"cosine_steps": "epochs", "epochs": 6, "hidden": 8, "lr": 0.01, **options}
    legnn.train(small_data(), **arguments(**given), on_epoch=logs.append)
    assert [log.lr for log in logs] == pytest.approx([written_out(k, 6, 0.01) for k in range(6)])
