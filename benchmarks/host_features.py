"""Mini-batches of a graph whose features are too large for a GPU: read from the host's memory, or from the GPU's.

    python -m benchmarks.host_features --nodes 100e6 --features 128 --steps 150 --json host.json

The graph has ogbn-papers100M's shape: 100 million nodes of 128 features are 51 GB. Its edges are drawn at random,
with hubs, and lie on the GPU. The same epochs are timed with the features in the GPU's memory, in pinned memory of the
host, which the GPU reads by itself, with and without `--hot` of them, those of the nodes that are read most, on the GPU
as well, and in memory that is not pinned, where the host gathers the rows of a batch.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.epochs import seconds
from benchmarks.speed import Case, settings_for
from benchmarks.speed_report import Row, machine, print_machine, versions
from benchmarks.synthetic import Size as GraphSize
from benchmarks.synthetic import Workload, synthetic_data
from legnn.config import fanouts_for
from legnn.graph import LabelGraph, SamplingOptions
from legnn.nn import LEGNN
from legnn.ops.csr.adjacency import Adjacency
from legnn.runs.device import hardware, register_pinned
from legnn.runs.precision import matrix_products
from legnn.training import MiniBatch, Objective, Task, make_adam

CLASSES = 172
PLACES = ("GPU", "pinned host, some on the GPU", "pinned host", "host")


def random_graph(nodes: int, degree: int, device: torch.device) -> Adjacency:
    """`degree` edges on average into every node, from sources of which some are hubs."""
    count = torch.randint(1, 2 * degree, (nodes,), device=device)
    rowptr = torch.zeros(nodes + 1, dtype=torch.long, device=device)
    torch.cumsum(count, 0, out=rowptr[1:])
    edges = int(rowptr[-1])
    col = torch.empty(edges, dtype=torch.int32, device=device)
    for part in col.split(2**27):
        part.copy_(torch.rand(part.numel(), device=device).square_() * (nodes - 1))
    return Adjacency(rowptr if edges >= 2**31 else rowptr.int(), col, None, nodes)


def random_features(nodes: int, features: int) -> torch.Tensor:
    """`[nodes, features]` in the host's memory, written by all its threads."""
    row, column = torch.rand(nodes, 1), torch.randn(1, features)
    return torch.mul(row, column, out=torch.empty(nodes, features))


def make_task(x: torch.Tensor, degree: int, train: int, device: torch.device) -> Task:
    """A task on the GPU with the features `x` where they are."""
    nodes = x.size(0)
    torch.manual_seed(0)
    order = torch.randint(nodes, (train + 1000,), device=device).unique()
    none = order[:0]
    return Task(
        x=x,
        graph=LabelGraph.without_labels(random_graph(nodes, degree, device), CLASSES),
        y=torch.randint(CLASSES, (nodes,), device=device),
        train=order[:train],
        val=order[train:],
        test=none,
        candidates=none,
    )


def copied_per_second(x: torch.Tensor, device: torch.device) -> float:
    """Bytes of a large copy from the memory of `x`."""
    part = x[: min(x.size(0), 4_000_000)]
    part.to(device)
    return part.nbytes / seconds(lambda: part.to(device), device)


def make_batching(task: Task, options: argparse.Namespace) -> MiniBatch:
    """The library as `legnn train --batch` runs it."""
    device = task.y.device
    tiny = GraphSize(nodes=1000, edges=4000, classes=CLASSES, features=task.x.size(1))
    work = Workload("tiny", synthetic_data(tiny), options.channels, 4)
    settings = settings_for(Case("legnn", options.backbone, "enhanced"), work)
    torch.manual_seed(0)
    model = LEGNN(task.x.size(1), CLASSES, settings.model).to(device)
    plan = hardware(device).plan(device, task.x.device)
    return MiniBatch(
        model,
        task,
        Objective(alpha=0.5),
        make_adam(model.parameter_groups(0.0), settings.train.lr, capture=plan.capture),
        torch.Generator().manual_seed(0),
        batch=options.batch,
        sampling=SamplingOptions(fanouts_for(options.fanout, model.num_stages)),
        dtype=hardware(device).precision(options.precision).dtype,
        plan=plan,
    )


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure and print; returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=float, default=1e6)
    parser.add_argument("--degree", type=int, default=15)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--channels", type=int, default=512)
    parser.add_argument("--backbone", default="sage", choices=("gcn", "sage", "gat"))
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fanout", default="15,10,5")
    parser.add_argument("--precision", default="tf32", choices=("fp32", "tf32", "bf16"))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--places", nargs="+", default=PLACES, choices=PLACES)
    parser.add_argument("--hot", type=float, default=0.2, help="part of the features that is kept on the GPU as well")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    device, nodes = torch.device(options.device), int(options.nodes)
    begin = time.perf_counter()
    x = random_features(nodes, options.features)
    task = make_task(x, options.degree, 2 * options.steps * options.batch, device)
    print(
        f"{nodes:,} nodes, {task.graph.adjacency.num_edges:,} edges, {x.nbytes / 1e9:.1f} GB of features, made in "
        f"{time.perf_counter() - begin:.0f} s",
        flush=True,
    )
    rows: list[Row] = []
    # unpinned first: what is pinned stays so
    for location in sorted(options.places, key=lambda name: -PLACES.index(name)):
        if location == "pinned host":
            begin = time.perf_counter()
            is_pinned = register_pinned(x)
            print(f"pinned: {is_pinned}, in {time.perf_counter() - begin:.1f} s", flush=True)
            print(f"a copy to the GPU: {copied_per_second(x, device) / 1e9:.1f} GB a second")
        task = replace(task, x=x.to(device) if location == "GPU" else x, hot=None)
        if location == PLACES[1]:
            task = task.with_hot_rows(int(options.hot * x.nbytes))
        parts = make_batching(task, options)
        with matrix_products(hardware(device).precision(options.precision).products):
            # kernels are compiled and steps captured before the clock runs
            first = parts.train_epoch(1)
            spent = seconds(lambda parts=parts: parts.train_epoch(2), device)
        row: Row = {"features": location, "ms": spent / options.steps * 1e3, "loss": float(first["supervised_loss"])}
        rows.append(row)
        print(f"| {location} | {row['ms']:.2f} ms a step | loss {row['loss']:.6f} |", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    milliseconds = {row["features"]: row["ms"] for row in rows}
    if "GPU" in milliseconds:
        for location in milliseconds:
            print(f"{location}: {milliseconds[location] / milliseconds['GPU']:.2f} times the GPU's")
    print_machine({"machine": machine(device), "versions": versions()})
    return rows


if __name__ == "__main__":
    main()
