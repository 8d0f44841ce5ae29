"""The splits, ids and files of a run: whether its scores are of the nodes, labels and data that it names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from legnn.data import GraphData
from legnn.errors import plural
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.subject import Subject
from legnn.runs.run import SPLITS, predictions_table
from legnn.training.inference import class_and_confidence

CONFIDENCE = 0.01
"""By more than this, no other device changes a confidence in single precision."""
SKEW = 0.3
"""Cramér's V between split and class above which scores of one split say little of another."""


def check_data(subject: Subject, *, is_given: bool) -> Finding:
    """Returns whether the data are those that the run was trained on; `is_given` if the user named others."""
    check, tried = "data as trained", "compare the fingerprint, nodes, edges, features and classes with data.json"
    graph, card = subject.graph, subject.members[0].card
    if graph.fingerprint() == card.fingerprint:
        return conclude(check, tried, graph.num_nodes, leaks=[], clean="the graph is the one it was trained on")
    found = {
        "nodes": (card.nodes, graph.num_nodes),
        "edges": (card.edges, graph.num_edges),
        "features": (card.features, graph.num_features),
        "classes": (len(card.classes), graph.num_classes),
    }
    differ = [f"{now:,} {name} (then {then:,})" for name, (then, now) in found.items() if then != now]
    said = f"not the graph the run was trained on: {', '.join(differ) or 'features, labels, edges or splits changed'}"
    leaks, doubts = ([], [said]) if is_given else ([said], [])
    return conclude(check, tried, graph.num_nodes, leaks=leaks, doubts=doubts, clean="")


def check_splits(subject: Subject) -> Finding:
    """Returns whether each node is in one split, has a label there, and is in the split that the run's scores say."""
    graph = subject.graph
    masks = torch.stack([getattr(graph, f"{name}_mask") for name in SPLITS])
    leaks = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = int((masks[i] & masks[j]).sum())
        if both:
            leaks.append(f"{plural(both, 'node')} in both {SPLITS[i]} and {SPLITS[j]}")
    unlabeled = int((masks.any(0) & (graph.y < 0)).sum())
    if unlabeled:
        leaks.append(f"{plural(unlabeled, 'node')} of a split without a label")
    known = subject.members[0].predictions
    stored = pd.Series(known["split"].to_numpy(), index=known["id"].astype(str))
    now = pd.Series(_split_names(graph, masks), index=pd.Index(graph.node_id).astype(str))
    if graph.node_types is not None:
        now = now[graph.node_types.target_mask.numpy()]
    if stored.index.is_unique and now.index.is_unique:
        common = stored.index.intersection(now.index)
        other = int((stored[common] != now[common]).sum())
        if other:
            leaks.append(f"{plural(other, 'node')} in another split than in the run's predictions")
    sizes = ", ".join(f"{int(mask.sum()):,} {name}" for name, mask in zip(SPLITS, masks, strict=True))
    tried = "look for nodes in two splits, without a label, or in another split than in the run's predictions"
    return conclude("splits", tried, int(masks.any(0).sum()), leaks=leaks, clean=sizes)


def _split_names(graph: GraphData, masks: torch.Tensor) -> np.ndarray:
    names = np.full(graph.num_nodes, "", dtype=object)
    for name, mask in zip(SPLITS, masks, strict=True):
        names[mask.numpy()] = name
    return names


def check_ids(subject: Subject) -> Finding:
    """Returns whether an id is there twice, or twice but for upper case, spaces and leading zeros."""
    graph = subject.graph
    ids = pd.Series(graph.node_id)
    kind = np.zeros(graph.num_nodes, dtype=np.int64) if graph.node_type is None else graph.node_type.numpy()
    split = _split_names(graph, torch.stack([getattr(graph, f"{name}_mask") for name in SPLITS]))
    twice = pd.DataFrame({"id": ids, "kind": kind}).duplicated(keep=False).to_numpy()
    leaks = [f"{plural(int(twice.sum()), 'node')} share an id with another"] if twice.any() else []
    doubts = []
    if graph.node_id.dtype.kind not in "iu":
        plain = ids.astype(str).str.strip().str.lower().str.replace(r"^0+(?=\w)", "", regex=True)
        nearly = pd.DataFrame({"id": plain, "kind": kind, "split": split})[~twice]
        alike = nearly[nearly.duplicated(["id", "kind"], keep=False) & (nearly["split"] != "")]
        across = int((alike.groupby(["id", "kind"])["split"].nunique() > 1).sum())
        if across:
            doubts = [f"{plural(across, 'id')} in two splits differ only in case, spaces or leading zeros"]
    tried = "look for ids that occur twice, exactly or but for case, spaces and leading zeros"
    return conclude("ids that occur twice", tried, graph.num_nodes, leaks=leaks, doubts=doubts, clean="all ids differ")


def check_class_shares(subject: Subject) -> Finding:
    """Returns whether the split of a node tells its class."""
    check, tried = "split and class", "measure how far the split of a node tells its class (Cramér's V)"
    graph = subject.graph
    count = np.stack(
        [
            np.bincount(subject.y[getattr(graph, f"{name}_mask").numpy()].clip(0), minlength=graph.num_classes)
            for name in SPLITS
        ]
    ).astype(float)
    count = count[count.sum(1) > 0][:, count.sum(0) > 0]
    if min(count.shape) < 2:
        return not_applicable(check, tried, "there is one split, or one class")
    expected = count.sum(1, keepdims=True) * count.sum(0, keepdims=True) / count.sum()
    v = float(np.sqrt(((count - expected) ** 2 / expected).sum() / count.sum() / (min(count.shape) - 1)))
    words = f"Cramér's V is {v:.2f}"
    doubts = [f"{words}: classes have very different shares of the splits"] if v > SKEW else []
    return conclude(check, tried, int(count.sum()), leaks=[], doubts=doubts, clean=words)


def check_predictions(subject: Subject, *, is_given: bool) -> Finding:
    """Returns whether the predictions that the run keeps, and its test accuracy, are those of its weights."""
    check, tried = "predictions and scores", "predict again, and compare with the stored predictions and test accuracy"
    if is_given or not subject.fits:
        return not_applicable(check, tried, "the data are not those that the stored predictions are of")
    graph, stored = subject.graph, subject.run.predictions
    now = predictions_table(graph, class_and_confidence(subject.probabilities())).frame
    if len(now) != len(stored) or not np.array_equal(now["id"].astype(str), stored["id"].astype(str)):
        return conclude(check, tried, len(stored), leaks=["the stored predictions are of other nodes"], clean="")
    differs = (now["prediction"].astype(str) != stored["prediction"].astype(str)).to_numpy()
    far = np.abs(now["confidence"].to_numpy() - stored["confidence"].to_numpy()) > CONFIDENCE
    leaks, test = [], subject.run.result.test
    if (differs & far).any() or far.mean() > CONFIDENCE:
        wrong = int((differs | far).sum())
        leaks.append(f"{plural(wrong, 'stored prediction')} of {len(now):,} are not those of the weights")
    mask = graph.test_mask.numpy()
    mask = mask if graph.node_types is None else mask[graph.node_types.target_mask.numpy()]
    if test is not None and mask.any():
        names = np.array([str(name) for name in graph.class_names], dtype=object)
        truth = names[subject.y[graph.test_mask.numpy()]]
        accuracy = float((now["prediction"].astype(str).to_numpy()[mask] == truth).mean())
        if abs(accuracy - test.accuracy) > CONFIDENCE:
            leaks.append(f"the test accuracy is {accuracy:.4f}, and the run says {test.accuracy:.4f}")
    return conclude(check, tried, len(now), leaks=leaks, clean="they are those of the weights")
