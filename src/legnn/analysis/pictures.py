"""Figures that look alike, in colors that color-blind readers tell apart, written atomically."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from legnn.errors import InputError
from legnn.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIRST, SECOND, MARK = "#3b6fb6", "#d1662a", "#666666"
"""Two hues and a gray that stay apart for color-blind readers and in print."""

# Paul Tol's muted scheme, with a gray as the tenth
CLASS_COLORS = (
    "#332288",
    "#88ccee",
    "#117733",
    "#ddcc77",
    "#cc6677",
    "#882255",
    "#44aa99",
    "#999933",
    "#aa4499",
    "#888888",
)
"""One color a class, for up to ten classes; more classes begin again with the first."""

MOST_COLUMNS = 4
"""Panels of a figure side by side."""

KINDS = (".png", ".svg", ".pdf")


def new_figure(rows: int = 1, cols: int = 1, *, width: float = 4.0, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """Returns a figure of `rows` times `cols` panels and their axes, row by row; a panel is `width` × `height` inches.

    The figure belongs to no window and to no backend, and the caller's choice of one stays as it is.
    """
    # matplotlib takes a second to import
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * cols, height * rows), layout="constrained")
    axes = [axis for row in figure.subplots(rows, cols, squeeze=False) for axis in row]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_points(
    points: pd.DataFrame, kind: Literal["line", "bar", "scatter"] = "line", x: str = "", y: str = ""
) -> Figure:
    """Returns a figure of the columns `x` and `y` of `points`: one panel for each `panel`, one color for each `series`.

    A column `std` has deviations. `x` and `y` name the axes.
    """
    panels = list(points.groupby("panel", sort=False))
    columns = min(max(len(panels), 1), MOST_COLUMNS)
    figure, axes = new_figure(max(-(-len(panels) // columns), 1), columns)
    for axis, (title, panel) in zip(axes, panels, strict=False):
        for number, (name, part) in enumerate(panel.groupby("series", sort=False)):
            look: dict[str, Any] = {"color": CLASS_COLORS[number % len(CLASS_COLORS)], "label": str(name)}
            deviation = part["std"].fillna(0.0) if "std" in part else None
            if kind == "bar":
                axis.bar(part["x"], part["y"], yerr=deviation, **look)
            elif kind == "scatter":
                axis.scatter(part["x"], part["y"], s=2, linewidths=0, **look)
            else:
                axis.errorbar(part["x"], part["y"], yerr=deviation, **look)
        axis.set(title=title, xlabel=x, ylabel=y)
        if kind == "bar":
            low = float(panel["y"].min() - 0.1 * abs(panel["y"].min()))
            axis.set_ylim(bottom=low if low > 0 else None)
            axis.tick_params(axis="x", rotation=40, labelsize=7)
        elif panel["series"].nunique() > 1:
            axis.legend(frameon=False, fontsize=8)
    return figure


def save_picture(figure: Figure, path: str | Path) -> None:
    """Writes the figure to a .png, .svg or .pdf file, atomically."""
    path = Path(path)
    if path.suffix not in KINDS:
        raise InputError(f"a picture goes to a .png, .svg or .pdf file, not to {path}")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=120)
