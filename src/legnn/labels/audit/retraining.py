"""A few epochs trained again with other test and validation labels: the weights must be the same to the bit."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.errors import InputError, OutOfMemory, plural
from legnn.labels.audit.findings import Check, Finding
from legnn.labels.audit.flips import flip_labels
from legnn.labels.audit.subject import Subject
from legnn.runs import Run
from legnn.runs.build import new_trainer
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.processes import join_ranks

EPOCHS = 5

TEST = Check(
    "training and test labels",
    f"train {EPOCHS} epochs again with test labels flipped, and compare weights and best epoch",
)
VALIDATION = Check(
    "training and validation labels",
    f"train {EPOCHS} epochs again with validation labels flipped, and compare the last weights",
)


class _Trained(NamedTuple):
    """The result of a short training."""

    last: dict[str, Tensor]
    """Weights after the last epoch."""
    best: dict[str, Tensor]
    """Weights of the best epoch."""
    best_epoch: int


def check_training(subject: Subject) -> list[Finding]:
    """Returns whether weights depend on test labels, or on validation labels beyond the choice of the epoch."""
    run, graph = subject.run.members[0], subject.graph

    def skip(reason: str) -> list[Finding]:
        return [TEST.skip(reason), VALIDATION.skip(reason)]

    def train_flipped(mask: Tensor) -> _Trained:
        return _train(run, flip_labels(graph, mask.nonzero().flatten()), subject.device)

    if not subject.fits:
        return skip("the data do not have the features, classes and node types of the run")
    try:
        before, again = (_train(run, graph, subject.device) for _ in range(2))
    except (InputError, OutOfMemory) as error:
        return skip(f"the run cannot be trained here: {error}")
    if not _equal(before.last, again.last):
        return skip("training does not repeat bit for bit on this device")
    after = train_flipped(graph.test_mask)
    same = _equal(before.last, after.last) and _equal(before.best, after.best) and before.best_epoch == after.best_epoch
    clean = f"{plural(len(before.last), 'tensor')} of weights and the best epoch are the same to the bit"
    leaks = [] if same else ["the weights or the best epoch changed"]
    findings = [TEST.conclude(int(graph.test_mask.sum()), leaks=leaks, clean=clean)]
    if not graph.val_mask.any():
        return [*findings, VALIDATION.skip("no node is for validation")]
    after = train_flipped(graph.val_mask)
    leaks = [] if _equal(before.last, after.last) else ["the weights changed"]
    clean = f"the same weights; validation labels choose the epoch, now {after.best_epoch}, before {before.best_epoch}"
    return [*findings, VALIDATION.conclude(int(graph.val_mask.sum()), leaks=leaks, clean=clean)]


def _train(run: Run, graph: GraphData, device: str) -> _Trained:
    settings = run.settings.override({"train.epochs": EPOCHS, "train.patience": EPOCHS + 1})
    selected = select_device(device)
    card = DataCard.of(graph)
    with (
        join_ranks(hardware(selected).process_group()) as ranks,
        new_trainer(settings, graph, card, selected, ranks) as trainer,
    ):
        trainer.fit()
        last = {name: value.detach().clone() for name, value in trainer.model.state_dict().items()}
        return _Trained(last, trainer.best, trainer.stopper.best_epoch)


def _equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())
