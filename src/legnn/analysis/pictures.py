"""Figures that look alike, in colors that color-blind readers tell apart, written atomically."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from legnn.errors import InputError
from legnn.files import atomic_write

if TYPE_CHECKING:
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


def save_picture(figure: Figure, path: str | Path) -> None:
    """Writes the figure to a .png, .svg or .pdf file, atomically."""
    path = Path(path)
    if path.suffix not in KINDS:
        raise InputError(f"a picture goes to a .png, .svg or .pdf file, not to {path}")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=120)
