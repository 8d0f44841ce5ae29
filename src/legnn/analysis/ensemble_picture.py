"""An ensemble as a picture: the weights and accuracies of its members, and what they were chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from legnn.analysis.pictures import FIRST, MARK, SECOND, new_figure, save_picture
from legnn.errors import InputError, first_line
from legnn.runs import Ensemble, is_ensemble_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEADERBOARD = "leaderboard.csv"
"""Of all candidates in an ensemble's folder: `name`, `postprocess`, `val`, …, `weight`, in order of `val`."""
MOST_BARS = 30
OTHERS = "#c3cfdd"


def draw_ensemble(ensemble: Ensemble, path: Path) -> None:
    """Draws the members' weights beside their validation accuracies, and the leaderboard where there is one."""
    names = [_label(Path(one.folder).name, one.postprocess) for one in ensemble.members]
    board = read_leaderboard(ensemble.folder / LEADERBOARD)
    bars = max(len(names), 4, 0 if board is None else min(len(board), MOST_BARS))
    figure, axes = new_figure(1, 2 if board is None else 3, height=1.2 + 0.22 * bars)
    accuracies = [float("nan") if one is None else one for one in ensemble.about.val_accuracy]
    _bars(axes[0], names, [one.weight for one in ensemble.members], [FIRST] * len(names), "weight")
    _bars(axes[1], names, accuracies, [SECOND] * len(names), "validation accuracy")
    axes[1].set_yticklabels([])
    # the scores of several seeds together would have to be computed
    val = ensemble.result.val if is_ensemble_folder(ensemble.folder) else None
    if val is not None:
        axes[1].axvline(val["accuracy"], color=MARK, linewidth=0.8, linestyle=":", label="ensemble")
        axes[1].legend(frameon=False, fontsize=8, loc="lower left")
    if board is not None:
        _draw_leaderboard(axes[2], board)
    for axis in axes:
        # bars of one height in all panels, the first on top
        axis.set_ylim(bars - 0.4, -0.6)
    figure.suptitle(f"{ensemble.card.name}: ensemble of {len(names)}", fontsize=11)
    save_picture(figure, path)


def read_leaderboard(path: Path) -> pd.DataFrame | None:
    """Returns the candidates that have a validation accuracy, in the order of the file; None where there is no file."""
    if not path.is_file():
        return None
    try:
        board = pd.read_csv(path, keep_default_na=False, na_values={"val": [""], "weight": [""]})
        return board[["name", "postprocess", "val", "weight"]].dropna(subset="val").reset_index(drop=True)
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged ({first_line(error)}); remove it to draw the members alone") from None


def _draw_leaderboard(axis: Axes, board: pd.DataFrame) -> None:
    first = board.head(MOST_BARS)
    names = [_label(name, post) for name, post in zip(first["name"], first["postprocess"], strict=True)]
    is_member = first["weight"].fillna(0) > 0
    cut = f"first {MOST_BARS} of {len(board)} candidates" if len(board) > MOST_BARS else f"{len(board)} candidates"
    title = f"validation accuracy of\n{cut}, members blue"
    _bars(axis, names, first["val"].tolist(), [FIRST if member else OTHERS for member in is_member], title)


def _bars(axis: Axes, names: Sequence[str], values: Sequence[float], colors: Sequence[str], title: str) -> None:
    """Horizontal bars; those of accuracies that are all high begin near the lowest of them."""
    places = range(len(names))
    axis.barh(places, values, color=colors)
    axis.set_yticks(places, names, fontsize=7)
    axis.set_title(title, fontsize=10)
    finite = [value for value in values if value == value]
    if "accuracy" in title and finite:
        axis.set_xlim(left=max(0.0, min(finite) - 0.5 * (max(finite) - min(finite)) - 0.01))


def _label(name: object, postprocess: object) -> str:
    return f"{name}, {str(postprocess).replace('_', ' ')}" if postprocess not in ("none", "") else str(name)
