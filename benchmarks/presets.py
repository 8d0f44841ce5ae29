"""Epochs of the presets `paper` and `published` at the sizes of the paper's data sets: seconds, memory, the whole run.

    python -m benchmarks.presets --size arxiv mag --device cuda --json presets.json

Each row trains a few epochs with exactly the settings that `legnn train ogbn-arxiv --preset …` (or `ogbn-mag`) resolves
to, on a synthetic graph with the nodes, edges, features, classes and training nodes of that data set. `epoch` is the
median without the first two, in which kernels are compiled; `all epochs` is the most a run takes, without early
stopping. With AS-Train on ogbn-mag, candidates are predicted in every epoch here, as they are from epoch 8 on; how many
get steps of their own depends on the data, and the random features of a synthetic graph give almost none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import pairwise
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.epochs import scaled
from benchmarks.measure import GIB, release
from benchmarks.speed_report import Row, machine, print_machine, versions
from benchmarks.synthetic import Workload
from legnn.config import Settings
from legnn.runs.session import Callbacks, start_run
from legnn.training import EpochLog

SOURCES = {"arxiv": "ogbn-arxiv", "mag": "ogbn-mag", "tiny": "ogbn-arxiv"}
CASES = (
    ("published", "gat", False),
    ("published", "gat", True),
    ("paper", "gcn", False),
    ("paper", "sage", False),
    ("paper", "gat", False),
)
"""Preset, backbone, and whether AS-Train is on."""

_out = Console(markup=False, emoji=False, highlight=False, width=140)


def measured(work: Workload, preset: str, backbone: str, as_train: bool, options: argparse.Namespace) -> Row:
    """A few epochs of one preset."""
    device, graph = torch.device(options.device), work.data
    release(device)
    settings = Settings(preset=preset).override(source=SOURCES[work.name], backbone=backbone)
    if as_train:
        # from the first epoch on a candidate can get a pseudo label
        settings = settings.override(as_train=True, delta=0.1)
    if work.name == "tiny":
        settings = settings.override(hidden=12)
    resolved = settings.resolve(graph.facts())
    most = resolved.train.epochs
    resolved = resolved.override(source="memory", epochs=options.epochs, patience=options.epochs, device=options.device)
    if work.name == "mag" and resolved.train.batch == "auto":
        resolved = resolved.override(batch=1024)
    times: list[float] = [time.perf_counter()]

    def after_epoch(log: EpochLog) -> None:
        times.append(time.perf_counter())

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start_run(graph, resolved, None, Callbacks(after_epoch, lambda: False))
    epochs = [after - before for before, after in pairwise(times)]
    epoch = statistics.median(epochs[2:] or epochs)
    return {
        "size": work.name,
        "preset": preset,
        "backbone": backbone,
        "as_train": as_train,
        "batch": resolved.train.batch,
        "precision": resolved.train.precision,
        "epoch_s": epoch,
        "epochs": most,
        "all_s": most * epoch,
        "peak_gib": torch.cuda.max_memory_allocated() / GIB if device.type == "cuda" else None,
        "device": options.device,
        "machine": machine(device),
        "versions": versions(),
    }


def print_rows(rows: list[Row]) -> None:
    """A line for each."""
    columns = ("size", "preset", "backbone", "batch", "precision", "epoch, s", "all epochs", "GiB")
    table = Table(*columns, box=box.MARKDOWN)
    for row in rows:
        name = f"{row['backbone']}, AS-Train" if row["as_train"] else row["backbone"]
        memory = "" if row["peak_gib"] is None else f"{row['peak_gib']:.1f}"
        whole = f"{row['epochs']:,} in {row['all_s'] / 60:.0f} min"
        words = (row["size"], row["preset"], name, str(row["batch"]), row["precision"], f"{row['epoch_s']:.3f}")
        table.add_row(*words, whole, memory)
    _out.print(table)


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure and print; returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", choices=tuple(SOURCES), default=["arxiv"])
    parser.add_argument("--presets", nargs="+", choices=("published", "paper"), default=["published", "paper"])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for size in options.size:
        work = scaled(size, 1.0)
        for preset, backbone, as_train in CASES:
            if preset in options.presets:
                rows.append(measured(work, preset, backbone, as_train, options))
                print_rows(rows[-1:])
                if options.json:
                    options.json.write_text(json.dumps(rows))
    print_machine(rows[0])
    print_rows(rows)
    return rows


if __name__ == "__main__":
    main()
