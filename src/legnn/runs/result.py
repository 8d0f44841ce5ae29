"""What a run came to, in a typed form that `result.json` and `summary.json` hold."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import torch

from legnn import __version__
from legnn.training import Scores


@dataclass(frozen=True, kw_only=True)
class Result:
    """The scores of one run and what they were obtained with; None for a split without nodes."""

    val: Scores | None
    test: Scores | None
    train_own_label_hidden: Scores | None
    """Of the training nodes, each predicted with the labels of its fold hidden, by weights trained on them."""
    best_epoch: int
    epochs: int
    seconds: float
    parameters: int
    seed: int
    device: str
    precision: str
    versions: dict[str, str]
    notes: list[str]
    """What a reader should know of the data travels with the scores."""


@dataclass(frozen=True, kw_only=True)
class MeanStd:
    """Mean and unbiased standard deviation; None for the deviation of one value."""

    mean: float
    std: float | None

    @classmethod
    def over(cls, values: Sequence[float]) -> MeanStd:
        """Returns both of `values`."""
        return cls(mean=statistics.fmean(values), std=statistics.stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True, kw_only=True)
class MeanScores:
    """The scores of several seeds on one split."""

    accuracy: MeanStd
    macro_f1: MeanStd

    @classmethod
    def over(cls, scores: Sequence[Scores]) -> MeanScores:
        """Returns the mean and deviation of each score."""
        return cls(
            accuracy=MeanStd.over([one.accuracy for one in scores]),
            macro_f1=MeanStd.over([one.macro_f1 for one in scores]),
        )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The scores of several seeds; None for a split without nodes."""

    val: MeanScores | None
    test: MeanScores | None
    train_own_label_hidden: MeanScores | None
    seeds: list[int]
    seconds: float
    parameters: int
    versions: dict[str, str]
    notes: list[str]


def summarize(results: Sequence[Result]) -> Summary:
    """Returns mean and unbiased deviation over runs that differ in their seed."""

    def over(split: str) -> MeanScores | None:
        scores = [scores for result in results if (scores := getattr(result, split)) is not None]
        return MeanScores.over(scores) if scores else None

    first = results[0]
    return Summary(
        val=over("val"),
        test=over("test"),
        train_own_label_hidden=over("train_own_label_hidden"),
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
    found = {"python": platform.python_version(), "legnn": __version__, "torch": str(torch.__version__)}
    for package in ("torch-geometric", "numpy", "numba", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found
