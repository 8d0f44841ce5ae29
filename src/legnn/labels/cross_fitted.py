"""Probabilities of labeled nodes by models that were not trained on their labels, averaged over several repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from legnn.config import Settings
from legnn.data import GraphData
from legnn.errors import InputError, plural
from legnn.runs.graphs import hide_labels
from legnn.runs.progress import Callbacks
from legnn.runs.session import resolve_for, start_run


def fold_nodes(node_id: np.ndarray, folds: int, repeat: int) -> np.ndarray:
    """`[M]` the fold of each node in a repeat: digit `repeat` of the hash of its id in base `folds`.

    It follows from the id alone, as in `legnn.cross_fit`, whose folds are those of repeat 0.
    """
    digest = pd.util.hash_array(node_id, categorize=False)
    return (digest // np.uint64(folds) ** np.uint64(repeat) % np.uint64(folds)).astype(np.int64)


def cross_fitted_probabilities(
    graph: GraphData, settings: Settings, *, folds: int, repeats: int, callbacks: Callbacks, name: str = ""
) -> np.ndarray:
    """`[M, C]` the mean probabilities of each node over models that were not trained on its label.

    A training node is predicted by one model for each of `repeats` divisions into folds, from whose graph its label
    was removed. Other nodes are predicted by all models: their labels were never shown and have no part in the loss,
    though those of validation nodes choose the epoch.
    """
    total = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    number = torch.zeros(graph.num_nodes, 1, dtype=torch.float64)
    for repeat in range(repeats):
        # another seed as well: what two models get wrong together, averaging does not mend
        seeded = settings.override({"train.seed": settings.values.get("train.seed", 0) + repeat})
        for fold, held in _held(graph, folds, repeat):
            callbacks.on_run(f"{name} fold {fold + 1}" + (f", repeat {repeat + 1}" if repeats > 1 else ""))
            part, resolved = resolve_for(hide_labels(graph, held), seeded)
            p = start_run(part, resolved, None, callbacks).predict_graph(part, device=resolved.train.device)
            judged = held | ~graph.train_mask
            total[judged] += p[judged].double()
            number[judged] += 1
    return (total / number).numpy()


def check_folds(graph: GraphData, folds: int, repeats: int) -> None:
    """Raises `InputError` where a model would be left without training nodes."""
    if folds < 2:
        raise InputError(f"labels are judged by models without them, in at least 2 folds, got {folds}")
    if repeats < 1:
        raise InputError(f"repeats must be at least 1, got {repeats}")
    train = graph.train_mask.numpy()
    if any(len(np.unique(fold_nodes(graph.node_id, folds, one)[train])) < 2 for one in range(repeats)):
        raise InputError(
            f"all {plural(int(graph.train_mask.sum()), 'training node')} of {graph.name} are in one of {folds} folds, "
            "without which none is left to train on; give more folds or more labels"
        )


def _held(graph: GraphData, folds: int, repeat: int) -> Iterator[tuple[int, torch.Tensor]]:
    fold = torch.from_numpy(fold_nodes(graph.node_id, folds, repeat))
    for k in fold[graph.train_mask].unique().tolist():
        yield k, graph.train_mask & (fold == k)
