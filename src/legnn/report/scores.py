"""The overview of a page: what was trained on what, how well, and in which settings runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from legnn.errors import InputError, first_line
from legnn.runs import MeanStd, Predictor
from legnn.runs.folder import LEADERBOARD
from legnn.training import title_of

MOST_ROWS = 40
"""Rows of a leaderboard on a page."""

SPLITS = {"test": "test", "val": "validation", "train_masked": "training, own label masked"}


@dataclass(frozen=True, kw_only=True)
class SplitScores:
    """The scores on one split; with deviations where they are means over seeds."""

    split: str
    values: dict[str, MeanStd]
    """By the title of the metric."""


def scores_of(run: Predictor) -> list[SplitScores]:
    """Returns the scores of the splits that have nodes; of several seeds their means."""
    values = {words: getattr(run.summary, split, None) for split, words in SPLITS.items()}
    return [
        SplitScores(split=words, values={title_of(name): _as_mean(value) for name, value in scores.items()})
        for words, scores in values.items()
        if scores
    ]


def _as_mean(value: float | MeanStd) -> MeanStd:
    return value if isinstance(value, MeanStd) else MeanStd(mean=value, std=None)


def settings_of(run: Predictor) -> dict[str, Any]:
    """Returns every setting by name; of several runs those of the first."""
    settings = run.members[0].settings
    return {"preset": settings.preset, **settings.flat()}


def differing(runs: Sequence[Predictor]) -> dict[str, list[str]]:
    """Returns the settings in which runs differ, with the value of each run."""
    values = [settings_of(run) for run in runs]
    names = [name for name in values[0] if len({str(one.get(name)) for one in values}) > 1]
    return {name: [str(one.get(name, "")) for one in values] for name in names}


def leaderboard_of(run: Predictor) -> dict[str, Any] | None:
    """Returns the rows of a search's leaderboard, or of an ensemble's members; None for a single run."""
    if run.kind == "run":
        return None
    path = None if run.folder is None else run.folder / LEADERBOARD
    if path is not None and path.is_file():
        try:
            board = pd.read_csv(path, keep_default_na=False, na_values={"val": [""], "weight": [""]})
            table = board[["name", "postprocess", "val", "test", "seconds", "parameters", "weight"]]
        except (KeyError, ValueError) as error:
            raise InputError(f"{path} is damaged ({first_line(error)}); remove it to show the members alone") from None
        return {"rows": table.head(MOST_ROWS).to_dict("records"), "of": len(table), "what": "candidates"}
    rows = [
        {
            "name": "" if member.folder is None else member.folder.name,
            "postprocess": member.settings.model.postprocess,
            "val": (member.result.val or {}).get("accuracy"),
            "test": (member.result.test or {}).get("accuracy"),
            "seconds": member.result.seconds,
            "parameters": member.result.parameters,
            "weight": weight,
        }
        for member, weight in zip(run.members, run.weights, strict=True)
    ]
    return {"rows": rows[:MOST_ROWS], "of": len(rows), "what": "seeds" if run.kind == "seeds" else "members"}
