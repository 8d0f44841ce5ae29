"""Sampling label graphs: how many edges a second, and whether time grows with the edges drawn and with nothing else.

    python -m benchmarks.sampling --size mag --device cpu --batch 1024 --fanout 15,10,5
    python -m benchmarks.sampling --sizes small arxiv mag --device cuda --json sampling.json

A batch is sampled whole: edges and labels drawn, nodes numbered, the blocks built. Half of the training nodes show
their labels, batches are taken from the other half. Edges are those of all layers, label edges included.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.measure import Measured, measure, release
from benchmarks.speed_report import Row, machine, print_machine, versions
from benchmarks.synthetic import SIZES, TRAINED, Size, skewed_graph
from legnn.config.training import parse_fanout
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph, SampledLabelGraph, sample_label_graph
from legnn.graph.sampling import Fanout

SHARE = 0.54
"""Of the nodes are for training where `TRAINED` has no number."""
FACTORS = (1, 2, 4)
"""Batches so many times as large, for the table of time against edges."""

_out = Console(markup=False, emoji=False, highlight=False, width=120)


@dataclass(frozen=True)
class Workload:
    """A label graph in which half of the training nodes show their label; the others are seeds."""

    name: str
    graph: LabelGraph
    seeds: Tensor


def workload(name: str, device: torch.device, size: Size | None = None) -> Workload:
    """The graph of a size of `benchmarks.synthetic`, with a self-loop at every node, and nothing else of it."""
    size = size or SIZES[name]
    generator = torch.Generator().manual_seed(0)
    loops = torch.arange(size.nodes)
    edge_index = torch.cat([skewed_graph(size.nodes, size.edges), loops.expand(2, -1)], 1)
    adjacency = Adjacency.from_edge_index(edge_index, size.nodes).to(device)
    train = torch.randperm(size.nodes, generator=generator)[: TRAINED.get(name, round(SHARE * size.nodes))]
    shown, seeds = train.tensor_split(2)
    share = 1.0 / torch.arange(3, size.classes + 3)
    y = torch.multinomial(share, shown.numel(), replacement=True, generator=generator)
    return Workload(name, LabelGraph(adjacency, shown.to(device), y.to(device), size.classes), seeds.to(device))


def measure_sampling(
    work: Workload, batch: int, fanouts: Sequence[Fanout], device: torch.device, repeats: int
) -> tuple[Measured, SampledLabelGraph]:
    """Time and memory of one batch, another one each time; and the last of them."""
    batches = work.seeds[: max(work.seeds.numel() // batch, 1) * batch].split(batch)
    number = count()
    last: list[SampledLabelGraph] = []

    def run() -> None:
        k = next(number)
        last[:] = [sample_label_graph(work.graph, batches[k % len(batches)], fanouts, (k, 1))]

    release(device)
    return measure(run, device, repeats, warmup=3), last[0]


def rows_for(
    work: Workload, batches: Sequence[int], fanouts: Sequence[Fanout], device: torch.device, repeats: int
) -> list[Row]:
    """A row for each size of batch."""
    rows: list[Row] = []
    for batch in batches:
        measured, sample = measure_sampling(work, batch, fanouts, device, repeats)
        seconds = (measured.milliseconds or float("nan")) / 1e3
        rows.append(
            {
                "size": work.name,
                "nodes": work.graph.num_nodes,
                "edges": work.graph.adjacency.num_edges,
                "batch": sample.blocks[-1].num_nodes,
                "fanout": list(fanouts),
                "drawn_edges": sample.num_edges,
                "drawn_nodes": sample.nodes.numel(),
                **asdict(measured),
                "edges_per_second": sample.num_edges / seconds,
                "nodes_per_second": sample.nodes.numel() / seconds,
                "device": device.type,
                "repeats": repeats,
                "machine": machine(device),
                "versions": versions(),
            }
        )
    return rows


def print_sampling(rows: Sequence[Row]) -> None:
    """The table of sampling alone."""
    table = Table(box=box.MARKDOWN, title=f"sampling on {rows[0]['device']}, median of {rows[0]['repeats']}")
    columns = (
        "graph",
        "edges",
        "batch",
        "drawn edges",
        "input nodes",
        "ms",
        "M edges/s",
        "M nodes/s",
        "ns/edge",
        "MiB",
    )
    for name in columns:
        table.add_column(name, justify="left" if name == "graph" else "right")
    for row in rows:
        time, memory = row["milliseconds"], row["peak_gib"]
        figures = (
            f"{row['edges']:,}", f"{row['batch']:,}", f"{row['drawn_edges']:,}",
            f"{row['drawn_nodes']:,}",
            row["note"] if time is None else f"{time:.2f}",
            f"{row['edges_per_second'] / 1e6:.1f}", f"{row['nodes_per_second'] / 1e6:.1f}",
            f"{1e9 / row['edges_per_second']:.0f}", "" if memory is None else f"{memory * 1024:.0f}",
        )  # fmt: skip
        table.add_row(row["size"], *figures)
    _out.print(table)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=tuple(SIZES), default="small", help="one graph, one size of batch")
    parser.add_argument(
        "--sizes",
        nargs="+",
        choices=tuple(SIZES),
        help="these graphs instead, and batches of 1, 2 and 4 times --batch",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fanout", type=_fanouts, default=(15, 10, 5), help="from the input side; 'all' for all")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda, but PyTorch sees no GPU here")
    if options.batch < 1 or options.repeats < 1:
        parser.error("--batch and --repeats must be 1 or more")
    return options


def _fanouts(text: str) -> list[Fanout]:
    try:
        return parse_fanout(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure, print, and give the rows."""
    options = parse(arguments)
    device = torch.device(options.device)
    factors = FACTORS if options.sizes else FACTORS[:1]
    batches = [factor * options.batch for factor in factors]
    rows: list[Row] = []
    for name in options.sizes or [options.size]:
        print(f"making {name}", file=sys.stderr, flush=True)
        rows += rows_for(workload(name, device), batches, options.fanout, device, options.repeats)
        if options.json:
            # a run cut short keeps what it has
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print_sampling(rows)
    print_machine(rows[0])
    return rows


if __name__ == "__main__":
    main()
