"""The splits, ids and files of a run: whether its scores belong to the nodes, labels and data that it names."""

from __future__ import annotations

import numpy as np
import pandas as pd

from legnn.data.splits import SPLITS, split_words
from legnn.errors import plural
from legnn.labels.audit.findings import Check, Finding
from legnn.labels.audit.subject import Subject
from legnn.runs.prediction_tables import predictions_table
from legnn.training.inference import class_and_confidence

CONFIDENCE = 0.01
"""No other device changes a confidence in single precision by more than this."""
SKEW = 0.3
"""Cramér's V between split and class above which scores of one split say little of another."""

DATA = Check("data as trained", "compare the fingerprint, nodes, edges, features and classes with the run's")
IN_SPLITS = Check("splits", "look for nodes without a label, or in another split than in the run's predictions")
IDS = Check("ids that occur twice", "look for ids that occur twice, exactly or but for case, spaces and leading zeros")
CLASS_SHARES = Check("split and class", "measure how far the split of a node tells its class (Cramér's V)")
PREDICTIONS = Check(
    "predictions and scores", "predict again, and compare with the stored predictions and test accuracy"
)


def check_data(subject: Subject, *, is_other_data: bool) -> Finding:
    """Returns whether the data are those that the run was trained on."""
    graph, card = subject.graph, subject.run.members[0].card
    if graph.fingerprint() == card.fingerprint:
        return DATA.conclude(graph.num_nodes, clean="the graph is the one it was trained on")
    sizes = {
        "nodes": (card.nodes, graph.num_nodes),
        "edges": (card.edges, graph.num_edges),
        "features": (card.features, graph.num_features),
        "classes": (len(card.classes), graph.num_classes),
    }
    changes = [f"{now:,} {name} (then {then:,})" for name, (then, now) in sizes.items() if then != now]
    lines = [
        f"not the graph the run was trained on: {', '.join(changes) or 'features, labels, edges or splits changed'}"
    ]
    return DATA.conclude(
        graph.num_nodes, leaks=[] if is_other_data else lines, warnings=lines if is_other_data else [], clean=""
    )


def check_splits(subject: Subject) -> Finding:
    """Returns whether each node of a split has a label, and is in the split that the run's predictions name."""
    graph = subject.graph
    split = split_words(graph.split)
    leaks = []
    unlabeled = int(((split != "") & (subject.y < 0)).sum())
    if unlabeled:
        leaks.append(f"{plural(unlabeled, 'node')} of a split without a label")
    stored_table = subject.run.members[0].predictions
    stored = pd.Series(stored_table["split"].to_numpy(), index=stored_table["id"].astype(str))
    now = pd.Series(split, index=pd.Index(graph.node_id).astype(str))
    if graph.node_types is not None:
        now = now[graph.node_types.target_mask.numpy()]
    if stored.index.is_unique and now.index.is_unique:
        common = stored.index.intersection(now.index)
        moved = int((stored[common] != now[common]).sum())
        if moved:
            leaks.append(f"{plural(moved, 'node')} in another split than in the run's predictions")
    sizes = ", ".join(f"{int((split == name).sum()):,} {name}" for name in SPLITS)
    return IN_SPLITS.conclude(int((split != "").sum()), leaks=leaks, clean=sizes)


def check_ids(subject: Subject) -> Finding:
    """Returns whether an id occurs twice, or twice but for upper case, spaces and leading zeros."""
    graph = subject.graph
    kind = np.zeros(graph.num_nodes, dtype=np.int64) if graph.node_type is None else graph.node_type.numpy()
    table = pd.DataFrame({"id": graph.node_id, "kind": kind, "split": split_words(graph.split)})
    twice = table.duplicated(["id", "kind"], keep=False)
    leaks = [f"{plural(int(twice.sum()), 'node')} share an id with another"] if twice.any() else []
    warnings = []
    if graph.node_id.dtype.kind not in "iu":
        table["id"] = table["id"].astype(str).str.strip().str.lower().str.replace(r"^0+(?=\w)", "", regex=True)
        splits = table[~twice & (table["split"] != "")].groupby(["id", "kind"])["split"].nunique()
        across = int((splits > 1).sum())
        if across:
            warnings = [f"{plural(across, 'id')} in two splits differ only in case, spaces or leading zeros"]
    return IDS.conclude(graph.num_nodes, leaks=leaks, warnings=warnings, clean="all ids differ")


def check_class_shares(subject: Subject) -> Finding:
    """Returns whether the split of a node tells its class."""
    split, classes = split_words(subject.graph.split), subject.graph.num_classes
    count = np.stack([np.bincount(subject.y[split == name].clip(0), minlength=classes) for name in SPLITS]).astype(
        float
    )
    count = count[count.sum(1) > 0][:, count.sum(0) > 0]
    if min(count.shape) < 2:
        return CLASS_SHARES.skip("there is one split, or one class")
    expected = count.sum(1, keepdims=True) * count.sum(0, keepdims=True) / count.sum()
    v = float(np.sqrt(((count - expected) ** 2 / expected).sum() / count.sum() / (min(count.shape) - 1)))
    words = f"Cramér's V is {v:.2f}"
    warnings = [f"{words}: classes have very different shares of the splits"] if v > SKEW else []
    return CLASS_SHARES.conclude(int(count.sum()), warnings=warnings, clean=words)


def check_predictions(subject: Subject, *, is_other_data: bool) -> Finding:
    """Returns whether the stored predictions of the run, and its test accuracy, are those of its weights."""
    if is_other_data or not subject.fits:
        return PREDICTIONS.skip("the data are not those that the stored predictions are of")
    graph, stored = subject.graph, subject.run.predictions
    now = predictions_table(graph, class_and_confidence(subject.probabilities())).frame
    if len(now) != len(stored) or not np.array_equal(now["id"].astype(str), stored["id"].astype(str)):
        return PREDICTIONS.conclude(len(stored), leaks=["the stored predictions are of other nodes"], clean="")
    differs = (now["prediction"].astype(str) != stored["prediction"].astype(str)).to_numpy()
    far = np.abs(now["confidence"].to_numpy() - stored["confidence"].to_numpy()) > CONFIDENCE
    leaks, test = [], subject.run.result.test
    if (differs & far).any() or far.mean() > CONFIDENCE:
        wrong = int((differs | far).sum())
        leaks.append(f"{plural(wrong, 'stored prediction')} of {len(now):,} are not those of the weights")
    is_test = (now["split"] == "test").to_numpy()
    if test is not None and is_test.any():
        names = np.array([str(name) for name in graph.class_names], dtype=object)
        truth = names[subject.y[split_words(graph.split) == "test"]]
        accuracy = float((now["prediction"].astype(str).to_numpy()[is_test] == truth).mean())
        if abs(accuracy - test["accuracy"]) > CONFIDENCE:
            leaks.append(f"the test accuracy is {accuracy:.4f}, and the run says {test['accuracy']:.4f}")
    return PREDICTIONS.conclude(len(now), leaks=leaks, clean="they are those of the weights")
