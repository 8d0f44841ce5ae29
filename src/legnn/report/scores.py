"""The overview of a page: what was trained on what, how well, and in which settings runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from legnn.config import ResolvedSettings
from legnn.errors import InputError, first_line, plural
from legnn.runs import Ensemble, MeanStd, Run, summarize
from legnn.runs.ensemble import is_ensemble_folder
from legnn.training import title_of

LEADERBOARD = "leaderboard.csv"
MOST_ROWS = 40
"""Rows of a leaderboard on a page."""

SPLITS = {"test": "test", "val": "validation", "train_masked": "training, own label masked"}


@dataclass(frozen=True, kw_only=True)
class SplitScores:
    """The scores on one split; with deviations where they are means over seeds."""

    split: str
    values: dict[str, MeanStd]
    """By the title of the metric."""


def is_of_seeds(run: Run | Ensemble) -> bool:
    """Whether it is the runs of several seeds."""
    return isinstance(run, Ensemble) and not is_ensemble_folder(run.folder)


def scores_of(run: Run | Ensemble) -> list[SplitScores]:
    """Returns the scores of the splits that have nodes; of several seeds their means."""
    if is_of_seeds(run):
        assert isinstance(run, Ensemble)
        summary = summarize([one.result for one in run.runs])
        found = {split: getattr(summary, split) for split in SPLITS}
        return [
            SplitScores(split=SPLITS[split], values={title_of(name): value for name, value in one.items()})
            for split, one in found.items()
            if one is not None
        ]
    return [
        SplitScores(split=words, values={title_of(name): MeanStd(mean=value, std=None) for name, value in one.items()})
        for split, words in SPLITS.items()
        if (one := getattr(run.result, split)) is not None
    ]


def describe_run(run: Run | Ensemble) -> str:
    """Returns what was trained, in a few words."""
    if isinstance(run, Run):
        return describe_settings(run.settings)
    if is_of_seeds(run):
        return f"{describe_settings(run.runs[0].settings)}, {len(run.runs)} seeds"
    return f"ensemble of {plural(len(run.members), 'member')}"


def describe_settings(settings: ResolvedSettings) -> str:
    """Returns the model in a few words."""
    model = settings.model
    words = f"{model.backbone.upper()}, {model.labels} labels" if model.architecture == "legnn" else model.architecture
    smooth = "" if model.postprocess == "none" else f", {model.postprocess.replace('_', ' ')}"
    return words + (", AS-Train" if settings.self_training.as_train else "") + smooth


def settings_of(run: Run | Ensemble) -> dict[str, Any]:
    """Returns every setting by name; of an ensemble those of its first member."""
    content = asdict((run if isinstance(run, Run) else run.runs[0]).settings)
    found: dict[str, Any] = {"preset": content.pop("preset")}
    for section in content.values():
        found.update(section)
    return found


def differing(runs: Sequence[Run | Ensemble]) -> dict[str, list[str]]:
    """Returns the settings in which runs differ, with the value of each run."""
    values = [settings_of(run) for run in runs]
    names = [name for name in values[0] if len({str(one.get(name)) for one in values}) > 1]
    return {name: [str(one.get(name, "")) for one in values] for name in names}


def leaderboard_of(run: Run | Ensemble) -> dict[str, Any] | None:
    """Returns the rows of a search's leaderboard, or of an ensemble's members; None for a single run."""
    if isinstance(run, Run):
        return None
    path = run.folder / LEADERBOARD
    if path.is_file():
        try:
            board = pd.read_csv(path, keep_default_na=False, na_values={"val": [""], "weight": [""]})
            table = board[["name", "postprocess", "val", "test", "seconds", "parameters", "weight"]]
        except (KeyError, ValueError) as error:
            raise InputError(f"{path} is damaged ({first_line(error)}); remove it to show the members alone") from None
        return {"rows": table.head(MOST_ROWS).to_dict("records"), "of": len(table), "what": "candidates"}
    rows = [
        {
            "name": Path(member.folder).name,
            "postprocess": member.postprocess,
            "val": accuracy,
            "test": None if one.result.test is None else one.result.test["accuracy"],
            "seconds": one.result.seconds,
            "parameters": one.result.parameters,
            "weight": member.weight,
        }
        for member, accuracy, one in zip(run.members, run.about.val_accuracy, run.runs, strict=True)
    ]
    return {"rows": rows[:MOST_ROWS], "of": len(rows), "what": "seeds" if is_of_seeds(run) else "members"}
