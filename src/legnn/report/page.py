"""The page itself: one file with its styles, scripts and data in it, which opens without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from legnn.errors import InputError
from legnn.files import write_text
from legnn.report.collecting import collect
from legnn.report.encoding import plain, to_script
from legnn.runs import Predictor

SCRIPTS = ("base.js", "charts.js", "map.js", "node.js", "sections.js", "labels.js", "live.js", "page.js")
"""In the order in which they use each other."""

SECTIONS = {
    "overview": "Overview",
    "curves": "Curves",
    "classes": "Classes",
    "map": "Map of the nodes",
    "node": "A node",
    "reliability": "Where it is right",
    "labels": "Labels that look wrong",
}
LIVE = ("overview", "curves")
"""The sections of a run in progress."""


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
        runs: one or several, side by side; or their folders, of several seeds and of `auto`, too.
        nodes: ids of the nodes whose predictions are explained; the most interesting ones if not given.
        labels: the table of `check_labels` on the same data, or the file of `legnn labels check`, for a section.
        say: called with a line before each step that takes long.
    """
    place = Path(out)
    if place.suffix not in (".html", ".htm"):
        raise InputError(f"a report goes to a .html file, not to {place}")
    every = [runs] if isinstance(runs, Predictor | str | Path) else list(runs)
    write_text(place, to_html(collect(every, nodes=nodes, labels=labels, device=device, say=say)))
    return place


def to_html(content: dict[str, Any]) -> str:
    """Returns the page of what was collected."""
    content = plain(content)
    title = content["runs"][0]["data"]["name"]
    shown = {name: words for name, words in SECTIONS.items() if name in LIVE or not content.get("live")}
    if not content["runs"][0].get("suspicious"):
        shown.pop("labels", None)
    links = "".join(f'<li><a href="#{name}">{words}</a></li>' for name, words in shown.items())
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en" data-theme="light">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # nothing is loaded from anywhere but, for a run in progress, the server of the page itself
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'\">",
            f"<title>{escape(title)} – legnn report</title>",
            f"<style>\n{_asset('page.css')}</style>",
            "</head>",
            "<body>",
            '<header class="top wrap"><div class="row">',
            f'<div><h1>{escape(title)}</h1><p class="sub" id="sub"></p></div>',
            '<div class="tools">'
            '<button type="button" id="theme" aria-label="switch between light and dark">Dark</button></div>',
            "</div></header>",
            f'<nav class="sections" aria-label="sections"><div class="wrap"><ul>{links}</ul></div></nav>',
            '<main class="wrap">',
            "<noscript><p>This page is drawn by scripts, which this browser does not run.</p></noscript>",
            *(_section(name, words) for name, words in shown.items()),
            "</main>",
            f'<footer class="wrap">legnn {escape(str(content["version"]))}</footer>',
            f'<script type="application/json" id="data">{to_script(content)}</script>',
            *(f"<script>\n{_asset(name)}</script>" for name in SCRIPTS),
            "</body>",
            "</html>",
            "",
        ]
    )


def _section(name: str, words: str) -> str:
    inner = f'<div id="{name}-view"></div>'
    if name == "node":
        inner = f'<div id="node-bar"></div><div id="node-pick"></div>{inner}'
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{words}</h2>{inner}</section>'


def _asset(name: str) -> str:
    return (files("legnn.report") / "assets" / name).read_text(encoding="utf-8")
