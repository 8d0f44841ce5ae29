"""Scores and settings of runs, and the leaderboard of a search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from legnn.errors import InputError, first_line
from legnn.report.payload import Leaderboard, LeaderboardRow, SplitScores
from legnn.runs import MeanStd, Predictor
from legnn.runs.folder import LEADERBOARD

MOST_ROWS = 40
"""Rows of a leaderboard on a page."""
SPLIT_TITLES = {"test": "test", "val": "validation", "train_masked": "training, own label masked"}


def scores_of(run: Predictor) -> list[SplitScores]:
    """Returns the scores of the splits that have nodes; of several seeds their means."""
    splits = {title: getattr(run.summary, split, None) for split, title in SPLIT_TITLES.items()}
    return [
        SplitScores(split=title, scores={name: _mean(value) for name, value in scores.items()})
        for title, scores in splits.items()
        if scores
    ]


def _mean(value: float | MeanStd) -> MeanStd:
    return value if isinstance(value, MeanStd) else MeanStd(mean=value, std=None)


def settings_of(run: Predictor) -> dict[str, str]:
    """Returns every setting by name; of an ensemble those of its first member."""
    settings = run.members[0].settings
    return {name: str(value) for name, value in {"preset": settings.preset, **settings.flat()}.items()}


def differing(runs: Sequence[Predictor]) -> dict[str, list[str]]:
    """Returns the settings in which runs differ, with the value of each run."""
    values = [settings_of(run) for run in runs]
    return {name: column for name in values[0] if len(set(column := [each.get(name, "") for each in values])) > 1}


def leaderboard_of(run: Predictor) -> Leaderboard | None:
    """Returns the rows of a search's leaderboard, or of an ensemble's members; None for a single run."""
    if run.kind == "run":
        return None
    path = None if run.folder is None else run.folder / LEADERBOARD
    if path is not None and path.is_file():
        return _read_leaderboard(path)
    rows = [
        LeaderboardRow(
            name="" if member.folder is None else member.folder.name,
            postprocess=member.settings.model.postprocess,
            val=(member.result.val or {}).get("accuracy"),
            test=(member.result.test or {}).get("accuracy"),
            seconds=member.result.seconds,
            parameters=member.result.parameters,
            weight=weight,
        )
        for member, weight in zip(run.members, run.weights, strict=True)
    ]
    return Leaderboard(rows=rows[:MOST_ROWS], total=len(rows), unit="seeds" if run.kind == "seeds" else "members")


def _read_leaderboard(path: Path) -> Leaderboard:
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values={"val": [""], "weight": [""]})
        columns = [table[name].tolist() for name in LeaderboardRow.__annotations__]
        rows = [
            LeaderboardRow(**dict(zip(LeaderboardRow.__annotations__, row, strict=True)))
            for row in zip(*columns, strict=True)
        ]
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged ({first_line(error)}); remove it to show the members alone") from None
    return Leaderboard(rows=rows[:MOST_ROWS], total=len(rows), unit="candidates")
