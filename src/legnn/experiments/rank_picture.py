"""The critical-difference picture: designs by their mean ranks, and bars that join those which do not differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from legnn.analysis.pictures import FIRST, MARK, SECOND, new_figure
from legnn.analysis.ranks import cliques

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, SIDE = 10.0, 2.2
"""Inches: the picture, and the room for names on each side of the axis."""
ROW, BAR = 0.22, 0.09
"""Inches between two names, and between two bars."""
ABOVE, BELOW = 0.75, 0.2
"""Inches above the axis, for its numbers and the critical difference, and between the axis and what is below it."""


def draw_ranks(names: Sequence[str], ranks: Sequence[float], difference: float, marked: Collection[str] = ()) -> Figure:
    """Draws `k` designs at their mean ranks, the best on the left; bars join those at most `difference` apart.

    The better half has its names on the left, the other half on the right, those of the outermost ranks at the top, so
    that no two lines cross. Names that are `marked` have a color of their own.
    """
    order = sorted(range(len(names)), key=lambda k: ranks[k])
    names, ranks = [names[k] for k in order], [ranks[k] for k in order]
    bars = _stack([(ranks[first], ranks[last]) for first, last in cliques(ranks, difference)])
    top = BELOW + BAR * (max((level for *_, level in bars), default=-1) + 1)
    left = (len(names) + 1) // 2
    height = ABOVE + top + ROW * (left + 0.5)
    figure, (axis,) = new_figure(width=WIDTH, height=height)
    # an inch in ranks: the axis has what the names leave
    inch = max(len(names) - 1, 1) / (WIDTH - 2 * SIDE)
    axis.set(xlim=(1 - SIDE * inch, max(len(names), 2) + SIDE * inch), ylim=(top + ROW * (left + 0.5), -ABOVE))
    axis.set_axis_off()
    _draw_axis(axis, max(len(names), 2), difference)
    for low, high, level in bars:
        y = BELOW + BAR * level
        axis.plot([low - 0.04 * inch, high + 0.04 * inch], [y, y], color=SECOND, linewidth=3, solid_capstyle="butt")
    for number, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        is_left = number < left
        row = number if is_left else len(names) - 1 - number
        y, end = top + ROW * (row + 0.5), (1 - 0.2 * inch if is_left else max(len(names), 2) + 0.2 * inch)
        color, weight = (FIRST, "bold") if name in marked else (MARK, "normal")
        axis.plot([rank, rank, end], [0, y, y], color=color, linewidth=0.9)
        text, side = (f"{name}  {rank:.2f}", "right") if is_left else (f"{rank:.2f}  {name}", "left")
        place = end + (-0.06 if is_left else 0.06) * inch
        axis.text(place, y, text, ha=side, va="center", fontsize=8, color=color, weight=weight)
    return figure


def _draw_axis(axis: Axes, last: int, difference: float) -> None:
    """The axis of ranks from 1 to `last`, and the critical difference above it."""
    axis.plot([1, last], [0, 0], color="black", linewidth=1)
    for rank in range(1, last + 1):
        axis.plot([rank, rank], [0, -0.06], color="black", linewidth=1)
        axis.text(rank, -0.1, str(rank), ha="center", va="bottom", fontsize=8)
    axis.plot([1, 1 + difference], [-0.45, -0.45], color=SECOND, linewidth=1.5, marker="|", markersize=6)
    axis.text(1, -0.52, f"critical difference {difference:.2f}", ha="left", va="bottom", fontsize=8, color=SECOND)


def _stack(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """The intervals, which ascend, each with the first level on which none of the earlier ones overlaps it."""
    ends: list[float] = []
    found = []
    for low, high in intervals:
        level = next((k for k, end in enumerate(ends) if end < low), len(ends))
        ends[level : level + 1] = [high]
        found.append((low, high, level))
    return found
