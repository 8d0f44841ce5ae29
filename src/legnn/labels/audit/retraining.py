"""A few epochs trained again with other test and validation labels: the weights must not differ by a bit."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.errors import InputError, OutOfMemory, plural
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.flips import flip_labels
from legnn.labels.audit.subject import Subject
from legnn.runs import Run
from legnn.runs.build import new_trainer
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.processes import join_ranks

EPOCHS = 5

TEST, VALIDATION, SETTINGS = "training and test labels", "training and validation labels", "settings and hidden labels"
_TEST = f"train {EPOCHS} epochs again with test labels flipped, and compare weights and best epoch"
_VALIDATION = f"train {EPOCHS} epochs again with validation labels flipped, and compare the last weights"
_SETTINGS = "flip every label that is not for training, and compare what presets choose by"


def check_settings(subject: Subject) -> Finding:
    """Returns whether what presets see of the graph depends on labels that are not for training."""
    graph = subject.graph
    hidden = ((graph.y >= 0) & ~graph.train_mask).nonzero().flatten()
    other = replace(graph, y=flip_labels(graph.y, hidden, graph.num_classes))
    leaks = [] if other.facts() == graph.facts() else ["the facts by which presets choose settings changed"]
    return conclude(SETTINGS, _SETTINGS, len(hidden), leaks=leaks, clean="the same facts, hence the same settings")


def check_training(subject: Subject) -> list[Finding]:
    """Returns whether weights depend on test labels, or on validation labels beyond the choice of the epoch."""
    if not subject.fits:
        why = "the data do not have the features, classes and node types of the run"
        return [not_applicable(*one, why) for one in ((TEST, _TEST), (VALIDATION, _VALIDATION))]
    run, graph = subject.members[0], subject.graph
    try:
        before, best, epoch = _train(run, graph, subject.device)
        again = _train(run, graph, subject.device)
    except (InputError, OutOfMemory) as error:
        why = f"the run cannot be trained here: {error}"
        return [not_applicable(*one, why) for one in ((TEST, _TEST), (VALIDATION, _VALIDATION))]
    if not _equal(before, again[0]):
        why = "training does not repeat bit for bit on this device"
        return [not_applicable(*one, why) for one in ((TEST, _TEST), (VALIDATION, _VALIDATION))]
    test = graph.test_mask.nonzero().flatten()
    after, best_after, epoch_after = _train(run, _flipped(graph, test), subject.device)
    same = _equal(before, after) and _equal(best, best_after) and epoch == epoch_after
    clean = f"{plural(len(before), 'tensor')} of weights and the best epoch are the same to the bit"
    leaks = [] if same else ["the weights or the best epoch changed"]
    findings = [conclude(TEST, _TEST, len(test), leaks=leaks, clean=clean)]
    val = graph.val_mask.nonzero().flatten()
    if not len(val):
        return [*findings, not_applicable(VALIDATION, _VALIDATION, "no node is for validation")]
    after, _, epoch_after = _train(run, _flipped(graph, val), subject.device)
    leaks = [] if _equal(before, after) else ["the weights changed"]
    clean = f"the same weights; the best epoch is {epoch_after} in the place of {epoch}, which is what they are for"
    return [*findings, conclude(VALIDATION, _VALIDATION, len(val), leaks=leaks, clean=clean)]


def _flipped(graph: GraphData, nodes: Tensor) -> GraphData:
    return replace(graph, y=flip_labels(graph.y, nodes, graph.num_classes))


def _train(run: Run, graph: GraphData, device: str) -> tuple[dict[str, Tensor], dict[str, Tensor], int]:
    """The last weights, the best weights and the best epoch of a short training with the run's settings."""
    settings = run.settings.override(epochs=EPOCHS, patience=EPOCHS + 1)
    where = select_device(device)
    card = DataCard.of(graph)
    with (
        join_ranks(hardware(where).process_group()) as ranks,
        new_trainer(settings, graph, card, where, ranks) as trainer,
    ):
        trainer.fit()
        last = {name: value.detach().clone() for name, value in trainer.model.state_dict().items()}
        return last, trainer.best, trainer.stopper.best_epoch


def _equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())
