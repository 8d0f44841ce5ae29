"""The page: one file with its styles, scripts and data, which opens without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import pandas as pd

from legnn.errors import InputError
from legnn.files import write_text
from legnn.report.collecting import collect
from legnn.report.payload import Page, to_json
from legnn.report.sections import SECTIONS
from legnn.runs import Predictor

SCRIPTS = ("base", "charts", "canvas", *SECTIONS, "live", "page")
"""Files `assets/NAME.js`, each after those that it uses."""


def write_report(
    runs: Predictor | str | Path | Sequence[Predictor | str | Path],
    out: str | Path = "report.html",
    *,
    nodes: Sequence[str] | None = None,
    labels: pd.DataFrame | str | Path | None = None,
    device: str = "auto",
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Writes one HTML file that shows finished runs or ensembles, and returns its path.

    >>> legnn.write_report("runs/first", "first.html")

    Args:
        runs: one or several, side by side; or their folders, also of several seeds and of `auto`.
        nodes: ids of the nodes whose predictions are explained; the most interesting ones for None.
        labels: the table of `check_labels` on the same data, or the file of `legnn labels check`, for a section.
        say: called with a line before each step that takes long.
    """
    path = Path(out)
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"a report goes to a .html file, not to {path}")
    several = [runs] if isinstance(runs, Predictor | str | Path) else list(runs)
    write_text(path, to_html(collect(several, nodes=nodes, labels=labels, device=device, say=say)))
    return path


def to_html(page: Page) -> str:
    """Returns the page as HTML."""
    return Template(_asset("page.html")).substitute(
        title=escape(page.runs[0].data.name),
        version=escape(page.version),
        style=_asset("page.css"),
        data=to_json(page),
        scripts="".join(f"<script>\n{_asset(f'{name}.js')}</script>\n" for name in SCRIPTS),
    )


def _asset(name: str) -> str:
    return (files("legnn.report") / "assets" / name).read_text(encoding="utf-8")
