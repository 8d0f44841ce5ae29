"""How well a run or an ensemble predicts: scores of splits, of classes, confusion, calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from legnn.analysis.calibration import brier_score, expected_calibration_error
from legnn.data.summary import missing_class_notes
from legnn.datasets import Source
from legnn.errors import plural
from legnn.notes import Note
from legnn.runs import Ensemble, Run
from legnn.runs.run import score_splits
from legnn.training import Scores
from legnn.training.inference import class_and_confidence


@dataclass(frozen=True, kw_only=True)
class ClassScores:
    """How well one class is predicted; a quotient without any nodes is 0, as scikit-learn has it."""

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
    """What `evaluate_run` found; None for the scores of a split without nodes."""

    data: str
    """The name of the graph."""
    val: Scores | None
    test: Scores | None
    train_masked: Scores | None
    """Of the training nodes, each predicted with the labels of its fold masked, by weights trained on them."""
    nodes: str
    """Whom all that follows is of: `test`, or without a test split `labeled`, all labeled nodes but training nodes."""
    classes: list[ClassScores]
    confusion: list[list[int]]
    """`[C][C]` how many nodes of a class, by row, are predicted as a class, by column."""
    ece: float | None
    """Expected calibration error; None without nodes."""
    brier: float | None
    notes: list[Note]

    @property
    def num_nodes(self) -> int:
        """How many nodes `classes`, `confusion`, `ece` and `brier` are of."""
        return sum(one.support for one in self.classes)


def evaluate_run(run: Run | Ensemble, data: Source | None = None, *, device: str = "auto") -> Evaluation:
    """Returns how well a run or an ensemble predicts its own graph, or `data`; arguments as in `Run.predict`."""
    graph, probabilities = run.labeled_probabilities(data, device=device)
    # of all nodes they may not fit into memory
    labeled = graph.labeled_nodes
    predicted = probabilities.new_zeros(graph.num_nodes, 2, dtype=torch.double)
    predicted[labeled] = class_and_confidence(probabilities)
    scores = score_splits(graph, probabilities)
    has_test = scores["test"] is not None
    nodes = graph.test_mask if has_test else (graph.y >= 0) & ~graph.train_mask
    y, p = graph.y[nodes].numpy(), probabilities[nodes[labeled]].numpy()
    classes, confidence = predicted[nodes].numpy().T
    confusion = confusion_matrix(classes.astype(np.int64), y, graph.num_classes)
    notes = missing_class_notes(graph)
    if not has_test:
        known = plural(len(y), "labeled node")
        text = f"there is no test split; classes and calibration are of {known} outside the training split."
        notes.append(Note("no-test-split", text))
    return Evaluation(
        data=graph.name,
        val=scores["val"],
        test=scores["test"],
        train_masked=scores["train"],
        nodes="test" if has_test else "labeled",
        classes=class_scores(confusion, graph.class_names),
        confusion=confusion.tolist(),
        ece=expected_calibration_error(confidence, classes == y) if len(y) else None,
        brier=brier_score(p, y) if len(y) else None,
        notes=notes,
    )


def confusion_matrix(predicted: np.ndarray, y: np.ndarray, num_classes: int) -> np.ndarray:
    """`[C, C]` how many nodes of class `y` `[n]`, by row, are `predicted` `[n]` as a class, by column."""
    return np.bincount(y * num_classes + predicted, minlength=num_classes**2).reshape(num_classes, num_classes)


def class_scores(confusion: np.ndarray, names: list[str | int | float]) -> list[ClassScores]:
    """Returns precision, recall and F1 of each class from a confusion matrix `[C, C]`."""
    right, support, taken = confusion.diagonal(), confusion.sum(1), confusion.sum(0)

    def quotient(below: np.ndarray, times: int = 1) -> list[float]:
        return (times * right / np.maximum(below, 1)).tolist()

    columns = (names, quotient(taken), quotient(support), quotient(support + taken, 2), support.tolist())
    return [
        ClassScores(name=name, precision=precision, recall=recall, f1=f1, support=count)
        for name, precision, recall, f1, count in zip(*columns, strict=True)
    ]
