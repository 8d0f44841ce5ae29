"""Scores of predictions: by split, by class, and the confusion of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from legnn.data import GraphData
from legnn.data.splits import SPLIT_NAMES, TEST, TRAIN
from legnn.data.summary import missing_class_notes
from legnn.errors import plural
from legnn.notes import Note
from legnn.training import Scores, score


@dataclass(frozen=True, kw_only=True)
class ClassScores:
    """Scores of one class; a quotient without any nodes is 0, as scikit-learn has it."""

    name: str | int | float
    precision: float
    """`TP / (TP + FP)`."""
    recall: float
    """`TP / (TP + FN)`."""
    f1: float
    """`2 TP / (2 TP + FP + FN)`."""
    support: int
    """`TP + FN`: the nodes of the class."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of a graph; None for those of a split without nodes."""

    data: str
    """The name of the graph."""
    val: Scores | None
    test: Scores | None
    train_masked: Scores | None
    """Of the training nodes, each predicted with the labels of its fold masked, by weights trained on them."""
    nodes: str
    """Nodes of all that follows: `test`, or without a test split `labeled`, all labeled nodes but training nodes."""
    scores: Scores | None
    classes: list[ClassScores]
    confusion: list[list[int]]
    """`[C][C]` how many nodes of a class, by row, are predicted as a class, by column."""
    notes: list[Note]

    @property
    def num_nodes(self) -> int:
        """The number of nodes that `classes`, `confusion` and `scores` are of."""
        return sum(row.support for row in self.classes)


def evaluate_probabilities(graph: GraphData, p: Tensor) -> Evaluation:
    """Returns the scores of the probabilities `p` `[n, C]` of `graph.labeled_nodes`."""
    splits = score_splits(graph, p)
    y, split = graph.y[graph.labeled_nodes], graph.split[graph.labeled_nodes]
    has_test = splits["test"] is not None
    notes = [note for note in graph.notes if note.code in ("new-graph", "unknown-class")] + missing_class_notes(graph)
    mask = split == TEST if has_test else split != TRAIN
    y, p = y[mask], p[mask]
    if not has_test:
        known = plural(len(y), "labeled node")
        text = f"there is no test split; classes and confusion are of {known} outside the training split."
        notes.append(Note("no-test-split", text))
    confusion = confusion_matrix(p.argmax(-1).numpy(), y.numpy(), graph.num_classes)
    return Evaluation(
        data=graph.name,
        val=splits["val"],
        test=splits["test"],
        train_masked=splits["train"],
        nodes="test" if has_test else "labeled",
        scores=score(p, y),
        classes=class_scores(confusion, graph.class_names),
        confusion=confusion.tolist(),
        notes=notes,
    )


def score_splits(graph: GraphData, p: Tensor) -> dict[str, Scores | None]:
    """Returns the scores of each split, None for one without nodes; `p` `[n, C]` is of `graph.labeled_nodes`."""
    y, split = graph.y[graph.labeled_nodes], graph.split[graph.labeled_nodes]
    values = {name: split == value for value, name in enumerate(SPLIT_NAMES) if name}
    return {name: score(p[mask], y[mask]) for name, mask in values.items()}


def confusion_matrix(predicted: np.ndarray, y: np.ndarray, num_classes: int) -> np.ndarray:
    """`[C, C]` how many nodes of class `y` `[n]`, by row, are `predicted` `[n]` as a class, by column."""
    return np.bincount(y * num_classes + predicted, minlength=num_classes**2).reshape(num_classes, num_classes)


def class_scores(confusion: np.ndarray, names: list[str | int | float]) -> list[ClassScores]:
    """Returns precision, recall and F1 of each class from a confusion matrix `[C, C]`."""
    right, support, predicted = confusion.diagonal(), confusion.sum(1), confusion.sum(0)

    def quotient(below: np.ndarray, times: int = 1) -> list[float]:
        return (times * right / np.maximum(below, 1)).tolist()

    columns = (names, quotient(predicted), quotient(support), quotient(support + predicted, 2), support.tolist())
    return [
        ClassScores(name=name, precision=precision, recall=recall, f1=f1, support=count)
        for name, precision, recall, f1, count in zip(*columns, strict=True)
    ]
