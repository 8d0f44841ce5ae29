"""The Markdown report of `benchmarks.leave_one_out`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from legnn.analysis.pictures import save_picture
from legnn.analysis.ranks import critical_difference, friedman_p_value, mean_ranks
from legnn.config.portfolio import Portfolio
from legnn.experiments.design_table import draw_ranks

OURS = ("auto", "single", "default")
PEERS = (
    "gcn", "gcn+smooth", "sage", "sage+smooth", "gat", "gat+smooth", "unimp", "gcnii", "appnp", "label_propagation",
    "boosted_trees",
)  # fmt: skip
GUARD = (
    "auto", "unguarded", "single", "best on validation", "first", "mean of first 4", "mean of first 8",
    "mean of first 16",
)  # fmt: skip


class Row(NamedTuple):
    """A method on one graph, split and seed."""

    data: str
    split: str
    seed: int
    method: str
    num_settings: int
    """Settings that were trained."""
    test: float
    members: str = ""


class Figure(NamedTuple):
    """Mean and deviation over seeds."""

    mean: float
    deviation: float
    seeds: int

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f}" + (f" ± {100 * self.deviation:.1f}" if self.seeds > 1 else "")

    def is_tied(self, other: Figure) -> bool:
        """Whether the means differ by no more than the larger deviation."""
        return abs(self.mean - other.mean) <= max(self.deviation, other.deviation)


Figures = dict[str, dict[str, Figure]]
"""By graph, then by method."""


def scoresof(rows: Iterable[Row]) -> Figures:
    """Returns mean and deviation of test accuracy, by graph and method."""
    accuracies: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        accuracies.setdefault(row.data, {}).setdefault(row.method, []).append(row.test)
    return {data: {name: _figure(values) for name, values in of.items()} for data, of in accuracies.items()}


def _figure(values: Sequence[float]) -> Figure:
    return Figure(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))


def comparable(figures: Mapping[str, Figure]) -> list[str]:
    """The methods with as many seeds on a graph as `auto`: means over other splits compare nothing."""
    return [name for name in (*OURS, *PEERS) if name in figures and figures[name].seeds == figures["auto"].seeds]


def ranked(figures: Figures) -> tuple[list[str], list[str], np.ndarray]:
    """Returns the methods, the graphs on which all of them have a run, and their mean ranks there.

    A method without a run on most of the graphs is left out.
    """
    known = {data: comparable(of) for data, of in figures.items()}
    some = [name for name in (*OURS, *PEERS) if 2 * sum(name in of for of in known.values()) > len(figures)]
    graphs = [data for data, of in known.items() if all(name in of for name in some)]
    if not graphs:
        return [], [], np.empty(0)
    return some, graphs, mean_ranks([[figures[data][name].mean for name in some] for data in graphs])


def write_report(rows: Sequence[Row], portfolios: Mapping[str, Portfolio], missing: Sequence[str]) -> str:
    """Returns all tables as Markdown."""
    parts = ["# Leave one graph out", _missing(missing)]
    for split in dict.fromkeys(row.split for row in rows):
        of_split = [row for row in rows if row.split == split]
        seeds = len({row.seed for row in of_split})
        parts += [f"## Split {split}", f"Test accuracy in percent, mean ± deviation over up to {seeds} seeds."]
        parts += [_accuracies(of_split), _ranks(of_split), _against_peers(of_split), _labels(of_split)]
    parts += ["## Does the guard work?", _guard(rows), "## Portfolios", _portfolios(portfolios)]
    return "\n\n".join(part for part in parts if part) + "\n"


def draw_report_ranks(rows: Sequence[Row], path: Path) -> None:
    """Draws the critical-difference picture of `ranked`."""
    methods, graphs, ranks = ranked(scoresof(rows))
    if methods:
        figure = draw_ranks(methods, ranks.tolist(), critical_difference(len(methods), len(graphs)), OURS)
        save_picture(figure, path)


def _missing(lines: Sequence[str]) -> str:
    if not lines:
        return "No runs are missing."
    return "Runs that are missing; methods choose among those that there are:\n\n" + _list(lines)


def _accuracies(rows: Sequence[Row]) -> str:
    figures = scoresof(rows)
    methods = [name for name in (*OURS, *PEERS) if any(name in of for of in figures.values())]
    lines = []
    for data, of in figures.items():
        best = max(of[name].mean for name in comparable(of))
        texts = [str(of[name]) if name in of else "–" for name in methods]
        bold = [name in comparable(of) and of[name].mean == best for name in methods]
        lines.append([data, *(f"**{text}**" if is_best else text for text, is_best in zip(texts, bold, strict=True))])
    return _table(["graph", *methods], lines)


def _ranks(rows: Sequence[Row]) -> str:
    figures = scoresof(rows)
    methods, graphs, ranks = ranked(figures)
    if not methods:
        return "No graph has runs of all methods, so there are no ranks."
    lines = []
    for k in np.argsort(ranks, kind="stable"):
        name = methods[k]
        scores, best = [], []
        for of in figures.values():
            peers = [of[other] for other in comparable(of) if other != name and not {name, other} <= set(OURS)]
            if name in comparable(of) and peers:
                scores.append(of[name])
                best.append(max(peers, key=lambda figure: figure.mean))
        wins = sum(a.mean > b.mean and not a.is_tied(b) for a, b in zip(scores, best, strict=True))
        ties = sum(a.is_tied(b) for a, b in zip(scores, best, strict=True))
        lines.append([name, f"{ranks[k]:.2f}", str(wins), str(ties), f"{wins + ties} of {len(scores)}"])
    scores = [[figures[data][name].mean for name in methods] for data in graphs]
    text = _table(["method", "mean rank", "best alone", "tied with the best", "best or tied"], lines)
    return (
        f"{text}\n\n{len(graphs)} graphs; tied: within the larger of the two deviations. Nemenyi critical difference "
        f"{critical_difference(len(methods), len(graphs)):.2f}, Friedman p = {friedman_p_value(scores):.2g}."
    )


def _against_peers(rows: Sequence[Row]) -> str:
    """The ensemble of as many candidates as a peer tries settings, against this peer."""
    by_seed = {(row.data, row.seed, row.method): row for row in rows}
    lines = []
    for peer in PEERS:
        pairs_of: dict[str, list[tuple[float, float]]] = {}
        of_peer = [row for row in rows if row.method == peer]
        for row in of_peer:
            # as many as the peer tried on this very seed, of which some runs may be missing
            ours = by_seed.get((row.data, row.seed, f"auto of {row.num_settings}"))
            if ours is not None:
                pairs_of.setdefault(row.data, []).append((ours.test, row.test))
        pairs = [(_figure([a for a, _ in of]), _figure([b for _, b in of])) for of in pairs_of.values()]
        if pairs:
            wins = sum(a.mean > b.mean and not a.is_tied(b) for a, b in pairs)
            ties = sum(a.is_tied(b) for a, b in pairs)
            gain = 100 * fmean(a.mean - b.mean for a, b in pairs)
            num_settings = sorted({row.num_settings for row in of_peer})
            number = str(num_settings[0]) if len(num_settings) == 1 else f"{num_settings[0]} to {num_settings[-1]}"
            lines.append([peer, number, str(wins), str(ties), str(len(pairs) - wins - ties), f"{gain:+.2f}"])
    head = ["against", "settings tried by each", "auto better", "tied", "worse", "mean difference, points"]
    return "With as many settings tried as the peer:\n\n" + _table(head, lines)


def _labels(rows: Sequence[Row]) -> str:
    by_seed = {(row.data, row.seed, row.method): row.test for row in rows}
    lines = []
    for data in dict.fromkeys(row.data for row in rows):
        seeds = [seed for (of, seed, name) in by_seed if of == data and name == "auto without labels"]
        gains = [by_seed[data, seed, "auto"] - by_seed[data, seed, "auto without labels"] for seed in seeds]
        if gains:
            lines.append([data, f"{100 * _figure(gains).mean:+.1f} ± {100 * _figure(gains).deviation:.1f}"])
    return "What labels are worth: points with label usages, minus without.\n\n" + _table(["graph", "points"], lines)


def _guard(rows: Sequence[Row]) -> str:
    kinds: dict[str, Callable[[Row], bool]] = {
        f"split {split}": lambda row, split=split: row.split == split for split in dict.fromkeys(r.split for r in rows)
    }
    lines = []
    for method in GUARD:
        line = [method]
        for is_kind in kinds.values():
            of = [figures[method].mean for figures in scoresof(filter(is_kind, rows)).values() if method in figures]
            line.append(f"{100 * fmean(of):.2f}" if of else "–")
        lines.append(line)
    return "Mean test accuracy over graphs, of the same portfolio:\n\n" + _table(["selection", *kinds], lines)


def _portfolios(portfolios: Mapping[str, Portfolio]) -> str:
    lines = []
    for data, portfolio in portfolios.items():
        lines.append(f"without {data}: {', '.join(portfolio.names[:6])}; default {portfolio.default[0]}")
    return _list(lines)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
