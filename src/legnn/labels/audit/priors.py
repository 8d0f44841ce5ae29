"""Prior knowledge of the labels that is none: features and edges of labels computed from test nodes."""

from __future__ import annotations

import numpy as np

from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.subject import Subject

CLOSE = 1e-4

CHECK = "label table made of test labels"
TRIED = "compare features and edges of labels with class means and class pairs of edges, with and without test nodes"


def check_priors(subject: Subject) -> Finding:
    """Returns whether the features or edges of labels are statistics that only test labels complete."""
    graph, y = subject.graph, subject.y
    if graph.label_x is None and graph.label_adjacency is None:
        return not_applicable(CHECK, TRIED, "the data have no features or edges of labels")
    train = graph.train_mask.numpy()
    hidden = {"all labeled nodes": y >= 0, "test nodes": graph.test_mask.numpy(), "other nodes": (y >= 0) & ~train}
    leaks, count = [], 0
    if graph.label_x is not None:
        count += graph.num_classes
        given = graph.label_x.numpy()
        if given.shape[1] == graph.num_features and not _is_close(given, _class_means(subject, train)):
            leaks += [
                f"label features are class means of {w}"
                for w, m in hidden.items()
                if _is_close(given, _class_means(subject, m))
            ][:1]
    if graph.label_adjacency is not None:
        count += int((graph.label_adjacency > 0).sum())
        between = graph.label_adjacency.numpy()
        if not _is_pairs(between, _class_pairs(subject, train)):
            leaks += [
                f"label–label edges count the edges of {w}"
                for w, m in hidden.items()
                if _is_pairs(between, _class_pairs(subject, m))
            ][:1]
    return conclude(CHECK, TRIED, count, leaks=leaks, clean="they are none of these")


def _class_means(subject: Subject, mask: np.ndarray) -> np.ndarray:
    nodes = np.flatnonzero(mask & (subject.y >= 0))
    x, y, classes = subject.graph.x[nodes].numpy(), subject.y[nodes], subject.graph.num_classes
    return np.stack([x[y == c].mean(0) if (y == c).any() else np.zeros(x.shape[1]) for c in range(classes)])


def _class_pairs(subject: Subject, mask: np.ndarray) -> np.ndarray:
    """`[C, C]` how many edges there are between classes, among the nodes of `mask`, self-loops left out."""
    adjacency, y, classes = subject.graph.adjacency, subject.y, subject.graph.num_classes
    row, col = adjacency.row.numpy(), adjacency.col.numpy()
    kept = mask[row] & mask[col] & (row != col) & (y[row] >= 0) & (y[col] >= 0)
    return np.bincount(y[row[kept]] * classes + y[col[kept]], minlength=classes**2).reshape(classes, classes)


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    scale = np.abs(other).max()
    return bool(scale > 0 and np.abs(one - other).max() <= CLOSE * scale)


def _is_pairs(between: np.ndarray, count: np.ndarray) -> bool:
    """Whether weights are these counts, as they are, as shares of all, or as shares of a row; diagonal or not."""
    for one in (count.astype(float), np.where(np.eye(len(count)) > 0, 0.0, count)):
        rows = one.sum(1, keepdims=True)
        forms = (one, one / max(one.sum(), 1), one / np.maximum(rows, 1))
        if any(_is_close(between, form) for form in forms):
            return True
    return False
