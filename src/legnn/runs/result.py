"""Results of a run and of several seeds, as their folders hold them."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import torch

from legnn import __version__
from legnn.notes import Note
from legnn.training import Scores


@dataclass(frozen=True, kw_only=True)
class Result:
    """The scores of one run and what they were obtained with; None for a split without nodes."""

    val: Scores | None
    test: Scores | None
    train_masked: Scores | None
    """Of the training nodes, each predicted with the labels of its fold masked, by weights trained on them."""
    best_epoch: int
    epochs: int
    seconds: float
    parameters: int
    seed: int
    device: str
    precision: str
    versions: dict[str, str]
    notes: list[Note]
    """Notes about the data travel with the scores."""


@dataclass(frozen=True, kw_only=True)
class MeanStd:
    """Mean and unbiased standard deviation; None for the deviation of one value."""

    mean: float
    std: float | None

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if self.std is None else f" ± {self.std:.4f}")

    @classmethod
    def over(cls, values: Sequence[float]) -> MeanStd:
        """Returns both of `values`."""
        return cls(mean=statistics.fmean(values), std=statistics.stdev(values) if len(values) > 1 else None)


MeanScores = dict[str, MeanStd]
"""Means and deviations over several runs by the name of the metric."""


def mean_scores(scores: Sequence[Scores | None]) -> MeanScores | None:
    """Returns the mean and deviation of each score that all runs have; None if one has no scores."""
    defined = [run for run in scores if run is not None]
    if len(defined) < max(len(scores), 1):
        return None
    names = [name for name in defined[0] if all(name in run for run in defined)]
    return {name: MeanStd.over([run[name] for run in defined]) for name in names}


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The scores of several seeds; None for a split without nodes."""

    val: MeanScores | None
    test: MeanScores | None
    train_masked: MeanScores | None
    seeds: list[int]
    seconds: float
    parameters: int
    versions: dict[str, str]
    notes: list[Note]


def summarize(results: Sequence[Result]) -> Summary:
    """Returns mean and unbiased deviation over runs that differ in their seed."""
    first = results[0]
    return Summary(
        val=mean_scores([result.val for result in results]),
        test=mean_scores([result.test for result in results]),
        train_masked=mean_scores([result.train_masked for result in results]),
        seeds=[result.seed for result in results],
        seconds=round(sum(result.seconds for result in results), 3),
        parameters=first.parameters,
        versions=first.versions,
        notes=first.notes,
    )


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages a result depends on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    # PyTorch's own string also names the CUDA it was built for
    packages = {"python": platform.python_version(), "legnn": __version__, "torch": str(torch.__version__)}
    for package in ("torch-geometric", "numpy", "numba", "scikit-learn"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "not installed as a package"
    return packages
