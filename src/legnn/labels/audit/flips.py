"""Predictions before and after labels are changed: a node's own label, and labels that are not for training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from legnn.data import GraphData
from legnn.errors import plural
from legnn.labels.audit.findings import Check, Finding
from legnn.labels.audit.subject import Subject
from legnn.training import assign_folds

MOST_SUSPECTS = 20
"""Most nodes whose labels are flipped one by one, after their predictions moved with the labels of their fold."""

OWN = Check("own label", "flip the labels of training nodes, fold by fold, and compare their own predictions")
HIDDEN = Check("validation and test labels", "flip every label that is not for training, and compare all predictions")
REACH = Check("labels of others", "count the other predictions that moved with flipped training labels")
SETTINGS = Check(
    "settings and hidden labels", "flip every label that is not for training, and compare what presets choose by"
)


def check_flips(subject: Subject, flips: int) -> list[Finding]:
    """Returns which predictions moved with a node's own label, with labels not for training, and with other labels."""
    if not subject.fits:
        reason = "the data do not have the features, classes and node types of the run"
        return [OWN.skip(reason), HIDDEN.skip(reason)]
    before = subject.probabilities()
    # predictions are compared to the bit, unless the device does not repeat them
    tolerance = float((before - subject.probabilities()).abs().max())
    return [*_check_own(subject, flips, before, tolerance), _check_hidden(subject, before, tolerance)]


def check_settings(subject: Subject) -> Finding:
    """Returns whether presets would choose other settings with other labels that are not for training."""
    graph, hidden = subject.graph, _hidden_nodes(subject.graph)
    same = flip_labels(graph, hidden).facts() == graph.facts()
    leaks = [] if same else ["the facts by which presets choose settings changed"]
    return SETTINGS.conclude(len(hidden), leaks=leaks, clean="the same facts, hence the same settings")


def flip_labels(graph: GraphData, nodes: Tensor) -> GraphData:
    """Returns the graph with another class, drawn at random, for each of `nodes` `[n]`."""
    generator = torch.Generator().manual_seed(len(nodes))
    shift = torch.randint(1, graph.num_classes, (len(nodes),), generator=generator)
    return replace(graph, y=graph.y.index_copy(0, nodes, (graph.y[nodes] + shift) % graph.num_classes))


def _moved(subject: Subject, flipped: Tensor, before: Tensor, tolerance: float) -> Tensor:
    """Returns the nodes whose probabilities change with the labels of the nodes `flipped`."""
    after = subject.probabilities(flip_labels(subject.graph, flipped).y)
    return ((before - after).abs() > tolerance).any(1).nonzero().flatten()


def _check_own(subject: Subject, flips: int, before: Tensor, tolerance: float) -> list[Finding]:
    graph = subject.graph
    train = graph.train_mask.nonzero().flatten()
    sampled = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(1))[:flips]]
    groups = _groups(subject, sampled)
    suspects: list[int] = []
    others = torch.zeros(graph.num_nodes, dtype=torch.bool)
    for group in groups:
        moved = _moved(subject, group, before, tolerance)
        suspects += moved[torch.isin(moved, group)].tolist()
        others[moved[~torch.isin(moved, group)]] = True
    # a suspect moved with the labels of its fold; flipped alone, it moves with its own label only
    alone = suspects[:MOST_SUSPECTS]
    saw = [node for node in alone if node in _moved(subject, torch.tensor([node]), before, tolerance).tolist()]
    leaks = []
    if saw:
        ids = ", ".join(str(node_id) for node_id in graph.node_id[saw[:3]])
        leaks = [
            f"{len(saw)} of {plural(len(alone), 'node')} flipped alone saw their own label, such as "
            f"{ids}; {plural(len(suspects), 'prediction')} moved with the labels of their fold"
        ]
    exact = "by a bit" if tolerance == 0 else f"by more than {tolerance:.1e}, the noise of repeating a prediction"
    clean = f"no prediction moved {exact} in {plural(len(groups), 'group')}"
    finding = OWN.conclude(len(sampled), leaks=leaks, clean=clean)
    if not any(run.model.uses_labels or run.settings.model.postprocess != "none" for run in subject.run.members):
        return [finding, REACH.skip("the model reads no labels when it predicts")]
    detail = f"{plural(int(others.sum()), 'other prediction')} moved: labels are read, and a leak would be seen"
    return [finding, REACH.conclude(graph.num_nodes, clean=detail)]


def _groups(subject: Subject, nodes: Tensor) -> list[Tensor]:
    """Returns the nodes in groups whose labels are masked together, so that all of a group can be flipped at once."""
    ids = subject.graph.node_id[nodes.numpy()]
    numbers = sorted({run.settings.train.own_label_folds for run in subject.run.members})
    keys = np.stack([assign_folds(ids, folds).numpy() for folds in numbers], 1)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return [nodes[torch.from_numpy(group == k)] for k in range(group.max() + 1)] if len(nodes) else []


def _check_hidden(subject: Subject, before: Tensor, tolerance: float) -> Finding:
    graph, hidden = subject.graph, _hidden_nodes(subject.graph)
    if not len(hidden):
        return HIDDEN.skip("every label is for training")
    moved = _moved(subject, hidden, before, tolerance)
    leaks = [f"{plural(len(moved), 'prediction')} of {graph.num_nodes:,} moved"] if len(moved) else []
    return HIDDEN.conclude(len(hidden), leaks=leaks, clean="no prediction moved")


def _hidden_nodes(graph: GraphData) -> Tensor:
    return ((graph.y >= 0) & ~graph.train_mask).nonzero().flatten()
