"""The members of an ensemble and their weights: what `ensemble.json` holds, or what follows from a folder of seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from legnn.errors import InputError
from legnn.runs.folder import RunFolder
from legnn.runs.run import Run
from legnn.runs.seeds import SUMMARY, seed_folders


@dataclass(frozen=True, kw_only=True)
class Member:
    """A run in an ensemble; one run with two post-processings is two members."""

    folder: str
    """Of the run, relative to that of the ensemble."""
    weight: float
    postprocess: str = "none"
    """In the place of the run's own, as in `Run.with_postprocess`."""
    propagation_steps: int
    propagation_alpha: float

    def apply_to(self, run: Run) -> Run:
        """Returns the run with the member's post-processing."""
        return run.with_postprocess(self.postprocess, steps=self.propagation_steps, alpha=self.propagation_alpha)


@dataclass(frozen=True, kw_only=True)
class EnsembleCard:
    """What `ensemble.json` holds."""

    members: list[Member]
    temperature: float
    """Above 1, probabilities are more even than the weighted mean; below 1, less."""
    val_accuracy: list[float | None]
    """Of each member alone; None without validation nodes."""

    def __post_init__(self) -> None:
        if not self.members or len(self.val_accuracy) != len(self.members):
            raise InputError("an ensemble has one or more members, each with its accuracy on validation")
        weights = [member.weight for member in self.members]
        if min(weights) < 0 or not math.isclose(sum(weights), 1, abs_tol=1e-6):
            raise InputError(f"the weights of members are at least 0 and their sum is 1, got {weights}")
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be above 0, got {self.temperature}")


def average_of_seeds(path: Path) -> EnsembleCard:
    """The runs of a finished folder of several seeds, with equal weights."""
    folders = [*map(RunFolder, seed_folders(path))]
    missing = [one.path.name for one in folders if not one.is_finished]
    if missing and (path / SUMMARY).is_file():
        raise InputError(
            f"{path} was finished, and {missing[0]} in it no longer is; restore it from a copy, or train it again with "
            f"`resume={path}`"
        )
    if missing:
        done = len(folders) - len(missing)
        raise InputError(
            f"{path} is not finished, {done} of {len(folders)} seeds are; continue it with `resume={path}`"
        )
    members, scores = [], []
    for one in folders:
        model = one.settings.model
        own = {name: getattr(model, name) for name in ("postprocess", "propagation_steps", "propagation_alpha")}
        members.append(Member(folder=one.path.name, weight=1 / len(folders), **own))
        scores.append(one.result().val)
    accuracies = [None if score is None else score["accuracy"] for score in scores]
    return EnsembleCard(members=members, temperature=1.0, val_accuracy=accuracies)
