"""All candidates of a search by validation accuracy, and the members that are chosen from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from legnn.config import ResolvedSettings
from legnn.runs.ensemble import Member
from legnn.runs.folder import RunFolder
from legnn.search.selection import best_single, fit_temperature, guarded_selection
from legnn.sweep.held_out import SMOOTH_SETTINGS, accuracy, read_held_out

LEAST_WEIGHT = 0.01
"""A member with less costs a prediction and changes none."""


@dataclass(frozen=True)
class Entry:
    """A finished candidate, as it is or after Correct & Smooth."""

    name: str
    is_smoothed: bool
    folder: Path
    val: np.ndarray
    """`[n, C]` probabilities of the validation nodes."""

    @property
    def settings(self) -> ResolvedSettings:
        """The settings of a run that is trained and post-processed like it."""
        settings = RunFolder(self.folder).settings
        return settings.override(SMOOTH_SETTINGS) if self.is_smoothed else settings


@dataclass(frozen=True)
class Chosen:
    """Weights and temperature, chosen on validation."""

    weights: np.ndarray
    """`[K]` of the entries."""
    single: int
    """The entry that is used where one model is wanted."""
    temperature: float


def entries_of(folders: Sequence[Path]) -> list[Entry]:
    """Returns the entries of finished candidates, in their order, each as it is and then smoothed."""
    entries = []
    for folder in folders:
        probabilities = read_held_out(folder)
        entries.append(Entry(folder.name, False, folder, probabilities["val"]))
        # the same settings would say how labels are propagated first, and how the result is smoothed
        is_propagation = RunFolder(folder).settings.model.architecture == "label_propagation"
        if "val_smooth" in probabilities and not is_propagation:
            entries.append(Entry(folder.name, True, folder, probabilities["val_smooth"]))
    return entries


def choose(entries: Sequence[Entry], y: np.ndarray, *, single: bool = False) -> Chosen:
    """Returns the weights of the members and the temperature, from validation nodes of classes `y` `[n]` alone."""
    p = np.stack([entry.val for entry in entries])
    best = best_single(p, y)
    weights = np.zeros(len(entries))
    if single:
        weights[best] = 1.0
    else:
        weights = guarded_selection(p, y)
        weights[weights < LEAST_WEIGHT] = 0.0
        weights /= weights.sum()
    return Chosen(weights, best, fit_temperature(np.tensordot(weights, p, 1), y))


def members_of(entries: Sequence[Entry], chosen: Chosen, root: str = "candidates") -> list[Member]:
    """Returns the members of an ensemble, relative to the folder of the search."""
    members = []
    for entry, weight in zip(entries, chosen.weights, strict=True):
        if weight > 0:
            model = entry.settings.model
            members.append(
                Member(
                    folder=f"{root}/{entry.name}",
                    weight=float(weight),
                    postprocess=model.postprocess,
                    propagation_steps=model.label_propagation.steps,
                    propagation_alpha=model.label_propagation.alpha,
                )
            )
    return members


def leaderboard(entries: Sequence[Entry], chosen: Chosen, y_val: np.ndarray, y_test: np.ndarray) -> pd.DataFrame:
    """Returns a row for each entry, the best on validation first; nothing is chosen by it."""
    rows = []
    for entry, weight in zip(entries, chosen.weights, strict=True):
        result = RunFolder(entry.folder).result()
        test = read_held_out(entry.folder)["test_smooth" if entry.is_smoothed else "test"]
        rows.append(
            {"name": entry.name, "postprocess": entry.settings.model.postprocess, "val": accuracy(entry.val, y_val),
             "test": accuracy(test, y_test), "seconds": result.seconds, "parameters": result.parameters,
             "weight": float(weight), "state": "finished"}
        )  # fmt: skip
    return pd.DataFrame(rows).sort_values("val", ascending=False, kind="stable", ignore_index=True)
