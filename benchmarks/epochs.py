"""Whole epochs of mini-batch training: seconds, nodes a second, and whether it is linear.

    python -m benchmarks.epochs --size mag --device cuda --backbones gcn sage gat --json epochs.json
    python -m benchmarks.epochs --size mag --scales 0.25 0.5 1 --device cuda --backbones sage --plot epochs.png

An epoch is what `legnn train --batch N` does in one: training nodes selected, half of them predicted in batches, each
sampled, gathered, trained on. `validation` is inference over all neighbors of the validation nodes, at once where that
fits. A graph scaled by 0.5 has half of the nodes, edges and training nodes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import GIB, release
from benchmarks.speed import Case, settings_for
from benchmarks.speed_report import Row, machine, print_machine, versions
from benchmarks.synthetic import SIZES, TRAINED, Size, Workload, synthetic_data
from legnn.config import fanouts_for
from legnn.data.splits import TRAIN, VAL
from legnn.graph import SamplingOptions
from legnn.nn import LEGNN
from legnn.runs.device import hardware, register_pinned
from legnn.runs.precision import matrix_products
from legnn.runs.resources import size_of
from legnn.training import MiniBatch, Objective, Task, make_adam

_out = Console(markup=False, emoji=False, highlight=False, width=200)


def scaled(name: str, scale: float) -> Workload:
    """A size of `SIZES` with `scale` times the nodes, the edges and the training nodes."""
    size: Size = SIZES[name]
    size = replace(size, nodes=round(size.nodes * scale), edges=2 * round(size.edges * scale / 2))
    data = synthetic_data(size)
    if name in TRAINED:
        wanted = round(TRAINED[name] * scale)
        order = torch.randperm(size.nodes, generator=torch.Generator().manual_seed(1))
        split = torch.zeros(size.nodes, dtype=torch.int8)
        split[order[:wanted]], split[order[wanted : round(1.1 * wanted)]] = TRAIN, VAL
        data = replace(data, split=split)
    return Workload(name, data, size.channels, size.heads)


def build(work: Workload, case: Case, options: argparse.Namespace, *, capture: bool = True) -> MiniBatch:
    """The library as `legnn train --batch` runs it, or without captured steps."""
    device, data = torch.device(options.device), work.data
    features = torch.device(options.features_on or options.device)
    if features.type != device.type:
        register_pinned(data.x)
    settings = settings_for(case, work)
    torch.manual_seed(0)
    model = LEGNN(data.x.size(1), len(data.class_names), settings.model)
    model.fit_scaler(data.x)
    model.to(device)
    plan = hardware(device).plan(device, features, size_of(data, settings).inference_bytes)
    plan = replace(plan, capture=plan.capture and capture)
    return MiniBatch(
        model,
        Task.from_graph(data, device, features=features),
        Objective(alpha=0.5, uses_labels=model.uses_labels),
        make_adam(model.parameter_groups(0.0), settings.train.lr, capture=plan.capture),
        torch.Generator().manual_seed(0),
        batch=options.batch,
        sampling=SamplingOptions(fanouts_for(options.fanout, model.num_stages)),
        dtype=hardware(device).precision(options.precision).dtype,
        plan=plan,
    )


def seconds(run: Callable[[], object], device: torch.device) -> float:
    """The time of one call, until the device has finished it."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def uncaptured_seconds(work: Workload, case: Case, options: argparse.Namespace) -> float:
    """An epoch of the same steps, launched one by one."""
    parts = build(work, case, options, capture=False)
    task, parts.task = parts.task, replace(parts.task, train=parts.task.train[: 8 * parts.batch])
    parts.train_epoch(1)
    parts.task = task
    return seconds(lambda: parts.train_epoch(2), parts.device)


def measured(work: Workload, case: Case, options: argparse.Namespace) -> Row:
    """One model on one graph."""
    device = torch.device(options.device)
    release(device)
    parts = build(work, case, options)
    predicted = parts.task.train.numel() // 2
    row: Row = {
        "size": work.name,
        "nodes": work.nodes,
        "edges": work.edges,
        "backbone": case.backbone,
        "labels": case.labels,
        "batch": parts.batch,
        "fanout": options.fanout,
        "features_on": options.features_on or options.device,
        "precision": options.precision,
        "predicted": predicted,
    }
    with matrix_products(hardware(device).precision(options.precision).products):
        # kernels are compiled, steps captured, and what the graph caches is computed, before the clock runs
        if device.type == "cuda":
            parts.train_epoch(1)
        few = parts.task.train[: 8 * parts.batch]
        task, parts.task = parts.task, replace(parts.task, train=few)
        parts.train_epoch(1)
        parts.task = task
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        row["epoch_s"] = seconds(lambda: parts.train_epoch(2), device)
        parts.validate(parts.task.train)
        row["validation_s"] = seconds(lambda: parts.validate(parts.task.train), device)
        row["uncaptured_s"] = uncaptured_seconds(work, case, options) if options.uncaptured else None
    row["peak_gib"] = torch.cuda.max_memory_allocated() / GIB if device.type == "cuda" else None
    return {**row, "device": options.device, "machine": machine(device), "versions": versions()}


def print_rows(rows: list[Row]) -> None:
    """A line for each."""
    columns = (
        *("graph", "edges", "backbone", "labels", "precision", "batch", "predicted"),
        *(
            "epoch, s",
            "uncaptured, s",
            "nodes/s",
            "features on",
            "validation, s",
            "GiB",
        ),
    )
    table = Table(*columns, box=box.MARKDOWN)
    for row in rows:
        memory, alone = row["peak_gib"], row["uncaptured_s"]
        table.add_row(
            *(row["size"], f"{row['edges']:,}", row["backbone"], row["labels"], row["precision"], f"{row['batch']:,}"),
            *(f"{row['predicted']:,}", f"{row['epoch_s']:.2f}", "" if alone is None else f"{alone:.2f}"),
            *(f"{row['predicted'] / row['epoch_s']:,.0f}", row["features_on"]),
            *(f"{row['validation_s']:.2f}", "" if memory is None else f"{memory:.1f}"),
        )
    _out.print(table)


def draw_plot(rows: list[Row], path: Path) -> None:
    """Seconds and memory against the edges of the graph, with the line through the origin and the largest graph."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [("epoch_s", "epoch, s"), ("validation_s", "validation, s")]
    if all(row["peak_gib"] is not None for row in rows):
        panels.append(("peak_gib", "peak memory, GiB"))
    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3), constrained_layout=True)
    for axis, (name, words) in zip(axes, panels, strict=True):
        for backbone in dict.fromkeys(row["backbone"] for row in rows):
            points = sorted((row["edges"] / 1e6, row[name]) for row in rows if row["backbone"] == backbone)
            across, up = zip(*points, strict=True)
            axis.plot(across, up, "o-", label=backbone)
            axis.plot([0, across[-1]], [0, up[-1]], ":", color="gray", linewidth=1)
        axis.set(xlabel="million edges", title=words, xlim=(0, None), ylim=(0, None))
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=120)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=tuple(SIZES), default="small")
    parser.add_argument("--scales", type=float, nargs="+", default=[1.0], help="parts of that size")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--features-on", choices=("cpu", "cuda"), help="where they are stored, if not on the device")
    parser.add_argument("--uncaptured", action="store_true", help="beside it, steps launched one by one")
    parser.add_argument("--backbones", nargs="+", default=["sage"], choices=("gcn", "sage", "gat"))
    parser.add_argument("--labels", nargs="+", default=["enhanced"], choices=("vanilla", "enhanced"))
    parser.add_argument("--precision", default="auto", choices=("auto", "fp32", "tf32", "bf16"))
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fanout", default="15,10,5")
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--plot", type=Path, help="draw seconds and memory against edges there")
    parser.add_argument("--from-json", type=Path, nargs="+", help="show rows of --backbones measured before instead")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure and print; returns the rows."""
    options = parse(arguments)
    rows: list[Row] = []
    for path in options.from_json or []:
        rows += [row for row in json.loads(path.read_text()) if row["backbone"] in options.backbones]
    for scale in [] if options.from_json else options.scales:
        print(f"making {options.size} times {scale:g}", file=sys.stderr, flush=True)
        work = scaled(options.size, scale)
        for backbone in options.backbones:
            for labels in options.labels:
                rows.append(measured(work, Case("legnn", backbone, labels), options))
                if options.json:
                    # a run cut short keeps what it has
                    options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print_rows(rows)
    print_machine(rows[0])
    if options.plot:
        draw_plot(rows, options.plot)
    return rows


if __name__ == "__main__":
    main()
