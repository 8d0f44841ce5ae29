"""Measurements that read a run's weights: smoothness, clustering, and scores of nodes that show their own label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from legnn.analysis.clustering import choose_nodes, cluster
from legnn.analysis.smoothness import graph_difference, relative_graph_difference
from legnn.nn import StagedModel
from legnn.runs import Run
from legnn.training import Scores, score


def measure_smoothness(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields GD, NMI and ARI over all nodes, and over test nodes alone."""
    run = Run.open(folder)
    states, classes = run.representations(), len(run.card.classes)
    for nodes in ("all", "test"):
        mask = (states.y >= 0) & ((states.split == "test") if nodes == "test" else True)
        z, y = states.nodes[mask], states.y[mask]
        chosen = choose_nodes(states.y, mask, seed=run.result.seed)
        clusters = cluster(states.nodes[chosen], states.y[chosen], seed=run.result.seed)
        yield {
            "nodes": nodes,
            "seed": run.result.seed,
            "GD": graph_difference(z, y, classes),
            "GD, relative": relative_graph_difference(z, y, classes),
            "NMI": clusters.nmi,
            "ARI": clusters.ari,
        }


def score_with_own_label(folder: Path) -> Scores | None:
    """Returns the scores of the training nodes of a run, each with its own label shown."""
    run = Run.open(folder)
    states = run.representations()
    assert isinstance(run.model, StagedModel), "representations come from such a model alone"
    mask = states.split == "train"
    with torch.no_grad():
        logits = run.model.classify(torch.as_tensor(states.nodes[mask]))
    return score(logits.cpu().float().softmax(-1), torch.as_tensor(states.y[mask]))
