"""Predictions before and after labels are changed: a node's own, and those of nodes that are not for training."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.errors import plural
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.subject import Subject
from legnn.training import assign_folds

FOLLOWED = 20
"""Most nodes whose labels are flipped one by one, after flipping those of a group moved them."""

OWN, HIDDEN, REACH = "own label", "validation and test labels", "labels of others"
_OWN = "flip the labels of training nodes, fold by fold, and compare their own predictions"
_HIDDEN = "flip every label that is not for training, and compare all predictions"
_REACH = "count the other predictions that moved with flipped training labels"


def check_flips(subject: Subject, flips: int) -> list[Finding]:
    """Returns what moved: by a node's own label, by labels that are not for training, and by those of others."""
    if not subject.fits:
        why = "the data do not have the features, classes and node types of the run"
        return [not_applicable(*one, why) for one in ((OWN, _OWN), (HIDDEN, _HIDDEN))]
    before = subject.probabilities()
    # bits are compared, unless the device does not repeat them
    tolerance = float((before - subject.probabilities()).abs().max())
    own, reached = _check_own(subject, flips, before, tolerance)
    return [own, _check_hidden(subject, before, tolerance), reached]


def flip_labels(y: Tensor, nodes: Tensor, num_classes: int) -> Tensor:
    """Returns `y` `[M]` with another class, drawn, for each of `nodes`."""
    generator = torch.Generator().manual_seed(len(nodes))
    shift = torch.randint(1, num_classes, (len(nodes),), generator=generator)
    return y.index_copy(0, nodes, (y[nodes] + shift) % num_classes)


def _moved(before: Tensor, after: Tensor, tolerance: float) -> Tensor:
    """The nodes whose probabilities differ."""
    return ((before - after).abs() > tolerance).any(1).nonzero().flatten()


def _check_own(subject: Subject, flips: int, before: Tensor, tolerance: float) -> tuple[Finding, Finding]:
    graph = subject.graph
    train = graph.train_mask.nonzero().flatten()
    sampled = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(1))[:flips]]
    groups = _groups(subject, sampled)
    suspects: list[int] = []
    others = torch.zeros(graph.num_nodes, dtype=torch.bool)
    for group in groups:
        moved = _moved(before, subject.probabilities(flip_labels(graph.y, group, graph.num_classes)), tolerance)
        suspects += moved[torch.isin(moved, group)].tolist()
        others[moved[~torch.isin(moved, group)]] = True
    # by a label of the group, be it their own or not: flipped alone, it is their own
    saw = [node for node in suspects[:FOLLOWED] if _sees_own(subject, node, before, tolerance)]
    leaks = []
    if saw:
        ids = ", ".join(str(one) for one in graph.node_id[saw[:3]])
        leaks = [
            f"{len(saw)} of {plural(len(suspects[:FOLLOWED]), 'node')} flipped alone saw their own label, such as "
            f"{ids}; {plural(len(suspects), 'prediction')} moved with the labels of their fold"
        ]
    exact = "by a bit" if tolerance == 0 else f"by more than {tolerance:.1e}, which repeating the prediction moves it"
    clean = f"no prediction moved {exact} in {plural(len(groups), 'group')}"
    own = conclude(OWN, _OWN, len(sampled), leaks=leaks, clean=clean)
    uses = any(run.model.uses_labels or run.settings.model.postprocess != "none" for run in subject.members)
    if not uses:
        return own, not_applicable(REACH, _REACH, "the model reads no labels when it predicts")
    detail = f"{plural(int(others.sum()), 'other prediction')} moved: labels are read, and a leak would be seen"
    return own, conclude(REACH, _REACH, graph.num_nodes, leaks=[], clean=detail)


def _groups(subject: Subject, nodes: Tensor) -> list[Tensor]:
    """The nodes in groups whose labels are hidden together, so that all of a group can be flipped at once."""
    ids = subject.graph.node_id[nodes.numpy()]
    numbers = sorted({run.settings.train.folds for run in subject.members})
    keys = np.stack([assign_folds(ids, folds).numpy() for folds in numbers], 1)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return [nodes[torch.from_numpy(group == k)] for k in range(group.max() + 1)] if len(nodes) else []


def _sees_own(subject: Subject, node: int, before: Tensor, tolerance: float) -> bool:
    graph = subject.graph
    after = subject.probabilities(flip_labels(graph.y, torch.tensor([node]), graph.num_classes))
    return node in _moved(before, after, tolerance).tolist()


def _check_hidden(subject: Subject, before: Tensor, tolerance: float) -> Finding:
    graph = subject.graph
    hidden = ((graph.y >= 0) & ~graph.train_mask).nonzero().flatten()
    if not len(hidden):
        return not_applicable(HIDDEN, _HIDDEN, "every label is for training")
    after = subject.probabilities(flip_labels(graph.y, hidden, graph.num_classes))
    moved = _moved(before, after, tolerance)
    leaks = [f"{plural(len(moved), 'prediction')} of {graph.num_nodes:,} moved"] if len(moved) else []
    return conclude(HIDDEN, _HIDDEN, len(hidden), leaks=leaks, clean="no prediction moved")
