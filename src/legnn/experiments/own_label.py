"""Scores of training nodes with their own labels in the graph: the paper's column, which says little."""

from __future__ import annotations

from pathlib import Path

import torch

from legnn.nn import StagedModel
from legnn.runs import Run
from legnn.training import Scores, score


def score_with_own_label(folder: Path) -> Scores | None:
    """Returns the scores of the training nodes of a run, each with its own label shown."""
    run = Run.open(folder)
    states = run.representations()
    assert isinstance(run.model, StagedModel), "representations come from such a model alone"
    mask = states.split == "train"
    with torch.no_grad():
        logits = run.model.classify(torch.as_tensor(states.nodes[mask]))
    return score(logits.cpu().float().softmax(-1), torch.as_tensor(states.y[mask]))
