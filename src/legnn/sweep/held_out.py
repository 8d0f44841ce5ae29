"""Probabilities of validation and test nodes, by which candidates are compared and joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from legnn.data import GraphData
from legnn.data.splits import SPLIT_NAMES
from legnn.errors import InputError
from legnn.runs.run import Run
from legnn.runs.tensors import load_tensors, save_tensors

HELD_OUT = "held_out.safetensors"
"""File in the folder of a run, next to those of the run itself."""

SMOOTH_SETTINGS: dict[str, Any] = {
    "model.postprocess": "correct_and_smooth",
    "model.label_propagation.steps": 50,
    "model.label_propagation.alpha": 0.8,
}
"""Correct & Smooth as it is tried on top of every candidate."""


def require_validation(graph: GraphData) -> None:
    """Raises `InputError` for a graph without validation nodes, by which settings are chosen."""
    if not bool(graph.val_mask.any()):
        raise InputError(f"no node of {graph.name} is for validation, by which settings are chosen; leave some for it")


def held_out_probabilities(run: Run, graph: GraphData, *, device: str = "auto") -> dict[str, np.ndarray]:
    """Returns the probabilities `val` and `test` `[n, C]` of the nodes of the splits, all training labels shown.

    `val_smooth` and `test_smooth` are those after Correct & Smooth; absent where the run has a post-processing itself.
    """
    probabilities = {}
    variants = {"": run}
    if run.settings.model.postprocess == "none":
        variants["_smooth"] = replace(run, settings=run.settings.override(SMOOTH_SETTINGS))
    for suffix, variant in variants.items():
        with variant.inference(graph, device=device) as (_, inference):
            for name in ("val", "test"):
                nodes = getattr(inference.task, name)
                probabilities[name + suffix] = inference.proba(nodes).float().cpu().numpy()
    return probabilities


def accuracy(probabilities: np.ndarray, y: np.ndarray) -> float:
    """The part of the rows of `probabilities` `[n, C]` whose largest entry is at `y` `[n]`; NaN without rows."""
    return float((probabilities.argmax(1) == y).mean()) if len(y) else float("nan")


def labels_of(graph: GraphData, split: str) -> np.ndarray:
    """`[n]` the classes of the nodes of a split, in the order of `held_out_probabilities`."""
    return graph.y[graph.split == SPLIT_NAMES.index(split)].numpy()


def save_held_out(run: Run, graph: GraphData) -> None:
    """Writes the probabilities of validation and test nodes to the folder of a run on `graph`."""
    assert run.folder is not None, "it was opened from its folder"
    probabilities = held_out_probabilities(run, graph, device=run.settings.train.device)
    save_tensors(run.folder / HELD_OUT, {name: torch.from_numpy(p) for name, p in probabilities.items()})


def read_held_out(folder: Path) -> dict[str, np.ndarray]:
    """Returns the probabilities that `save_held_out` wrote."""
    return {name: tensor.numpy() for name, tensor in load_tensors(folder / HELD_OUT)[0].items()}
