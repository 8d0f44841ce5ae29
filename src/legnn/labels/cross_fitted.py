"""Probabilities of labeled nodes by models that were not trained on their labels, averaged over several repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import torch

from legnn.config import Settings
from legnn.data import GraphData
from legnn.errors import InputError, plural
from legnn.runs.graphs import hide_fold
from legnn.runs.run import Run
from legnn.sweep import Event, Trial, executor_for
from legnn.sweep.sweep import sweep_folder, train_trials
from legnn.sweep.tasks import with_fingerprint
from legnn.training import assign_folds


def cross_fitted_probabilities(
    graph: GraphData,
    settings: Mapping[str, Settings],
    *,
    folds: int,
    repeats: int,
    on_event: Callable[[Event], None] = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> dict[str, np.ndarray]:
    """`[M, C]` for each of several settings: the mean probabilities over models that were not trained on the label.

    A training node is predicted by one model for each of `repeats` divisions into folds, from whose graph its label
    was removed. Other nodes are predicted by all models: their labels were never shown and have no part in the loss,
    though those of validation nodes choose the epoch.
    """
    graph = with_fingerprint(graph)
    parts = [k for k in range(folds * repeats) if _training_nodes(graph, k, folds).any()]
    # another seed for each division as well: a mistake that two models share is not corrected by averaging
    trials = {
        (name, k): Trial(
            name=f"{name}-fold-{k}",
            data=graph,
            settings=chosen.override({"train.seed": chosen.values.get("train.seed", 0) + k // folds}),
            hidden_fold=(k, folds),
        )
        for (name, chosen), k in product(settings.items(), parts)
    }
    first = next(iter(settings.values()))
    probabilities = {}
    with sweep_folder(None) as folder:
        executor = executor_for(graph, first.resolve(graph.facts()), len(trials))
        train_trials(folder, [*trials.values()], executor, on_event, should_stop, progress=progress)
        for name in settings:
            total = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
            number = torch.zeros(graph.num_nodes, 1, dtype=torch.float64)
            for k in parts:
                part, run = hide_fold(graph, k, folds), Run.open(folder / trials[name, k].name)
                p = run.predict_graph(part, device=run.settings.train.device)
                judged = ~part.train_mask
                total[judged] += p[judged].double()
                number[judged] += 1
            probabilities[name] = (total / number).numpy()
    return probabilities


def _training_nodes(graph: GraphData, k: int, folds: int) -> torch.Tensor:
    return graph.train_mask & (assign_folds(graph.node_id, folds, k // folds) == k % folds)


def check_folds(graph: GraphData, folds: int, repeats: int) -> None:
    """Raises `InputError` where a model would be left without training nodes."""
    if folds < 2:
        raise InputError(f"labels are judged by models without them, in at least 2 folds, got {folds}")
    if repeats < 1:
        raise InputError(f"repeats must be at least 1, got {repeats}")
    if any(assign_folds(graph.node_id, folds, k)[graph.train_mask].unique().numel() < 2 for k in range(repeats)):
        raise InputError(
            f"all {plural(int(graph.train_mask.sum()), 'training node')} of {graph.name} are in one of {folds} folds, "
            "without which none is left to train on; give more folds or more labels"
        )
