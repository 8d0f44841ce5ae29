"""What `benchmarks.speed` prints: tables by phase, and ratios."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.peers import HETERO

Row = dict[str, Any]
"""One measurement: `implementation`, `backbone`, `labels`, `phase`, `milliseconds`, `peak_gib`, and what it was of."""


PHASE_NAMES = {"train": "one training step", "inference": "inference"}
CONV = {"gcn": "GCNConv", "sage": "SAGEConv", "gat": "GATConv"}
NAMES = {"gcn": "GCN", "sage": "SAGE", "gat": "GAT"}

_out = Console(markup=False, emoji=False, highlight=False)


def machine(device: torch.device) -> str:
    """What it ran on, in words."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    return f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.is_file() else None
    return match[1].strip() if match else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Of everything a time can depend on; what is not installed is left out."""
    installed = {"python": platform.python_version(), "torch": torch.__version__}
    for name in ("torch-geometric", "triton", "numba", "numpy", "legnn"):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def print_size(rows: list[Row]) -> None:
    """The tables of one size."""
    first = rows[0]
    size = first["size"]
    _out.print(
        f"\n{size}: {first['nodes']:,} nodes, {first['edges']:,} edges (both directions, and a self-loop at every "
        f"node, as the library prepares a graph), D = {first['channels']}, 3 layers, on {first['device']}, "
        f"median of {first['repeats']}\n"
    )
    for phase, name in PHASE_NAMES.items():
        _print_phase([row for row in rows if row["phase"] == phase], f"{size}, {name}")
    _print_ratios(rows, size)


def print_machine(row: Row) -> None:
    """What it ran on and with."""
    _out.print(f"machine: {row['machine']}")
    _out.print("versions: " + ", ".join(f"{name} {number}" for name, number in row["versions"].items()))


def _table(title: str, words: Iterable[str], numbers: Iterable[str], caption: str | None = None) -> Table:
    # narrow enough for a terminal of 80 columns
    table = Table(title=title, box=box.SIMPLE_HEAD, caption=caption, padding=(0, 1, 0, 0))
    table.title_justify = table.caption_justify = "left"
    for header in words:
        table.add_column(header, no_wrap=True)
    for header in numbers:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _print_phase(rows: list[Row], title: str) -> None:
    words = ["precision", "implementation", "backbone", "labels"]
    table = _table(title, words, ("ms", "GiB", ""))
    for row in rows:
        cells = [_milliseconds(row["milliseconds"]), "" if row["peak_gib"] is None else f"{row['peak_gib']:.2f}"]
        table.add_row(*(row[word] for word in words), *cells, row["note"])
    _out.print(table)


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


class Ratio(NamedTuple):
    """`of` is first / second; None in a phase where either figure is missing."""

    precision: str
    backbone: str
    figure: str
    of: str
    train: float | None
    inference: float | None


def ratios(rows: list[Row]) -> list[Ratio]:
    """All that can be made of the rows of one size."""
    keys = ("implementation", "backbone", "labels", "precision", "phase")
    known = {tuple(row[key] for key in keys): row for row in rows}
    result = []

    def add(backbone: str, of: str, over: tuple[str, ...], under: tuple[str, ...], *figures: str) -> None:
        for figure in figures:
            both = []
            for phase in PHASE_NAMES:
                values = [known.get((*key, phase), {}).get(figure) for key in (over, under)]
                both.append(values[0] / values[1] if all(values) else None)
            if any(both):
                result.append(Ratio(under[-1], NAMES[backbone], figure, of, *both))

    precisions = list(dict.fromkeys(row["precision"] for row in rows))
    for precision in precisions:
        for backbone in dict.fromkeys(row["backbone"] for row in rows if row["implementation"] == "legnn"):
            ours, vanilla = (("legnn", backbone, labels, precision) for labels in ("enhanced", "vanilla"))
            # half precision also against what a user of PyG runs without a thought of precision
            for theirs in precisions if precision == "bf16" else [precision]:
                said = "" if theirs == precision != "bf16" else f" ({theirs})"
                hetero = ("pyg-hetero", HETERO[backbone], "enhanced", theirs)
                of = f"HeteroConv {CONV[HETERO[backbone]]}{said} / enhanced"
                add(backbone, of, hetero, ours, "milliseconds", "peak_gib")
                pyg = ("pyg", backbone, "vanilla", theirs)
                add(backbone, f"{CONV[backbone]}{said} / vanilla", pyg, vanilla, "milliseconds", "peak_gib")
            add(backbone, "enhanced / vanilla", ours, vanilla, "milliseconds", "peak_gib")
    return result


def _print_ratios(rows: list[Row], size: str) -> None:
    note = "GCNConv cannot go between types of nodes, so GCN's HeteroConv peer is SAGEConv's."
    gcn_has_a_peer = {("legnn", "gcn"), ("pyg-hetero", "sage")} <= {(r["implementation"], r["backbone"]) for r in rows}
    table = _table(
        f"{size}, ratios: PyG's over ours, ours over ours",
        ("", "ours", "of", ""),
        ("train", "inference"),
        caption=note if gcn_has_a_peer else None,
    )
    names = {"milliseconds": "time", "peak_gib": "memory"}
    for ratio in ratios(rows):
        both = ("–" if value is None else f"{value:.2f}×" for value in (ratio.train, ratio.inference))
        table.add_row(ratio.precision, ratio.backbone, ratio.of, names[ratio.figure], *both)
    _out.print(table)
