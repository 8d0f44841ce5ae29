"""Time and memory of ours and of PyG, side by side in one run.

    python -m benchmarks.speed --size small --device cpu
    python -m benchmarks.speed --size arxiv --device cuda --precision tf32 bf16 --json arxiv.json

| implementation | what |
|---|---|
| `legnn`, vanilla and enhanced | the library's own full-batch training and prediction |
| `pyg`, vanilla | PyG's `GCNConv`, `SAGEConv`, `GATConv` |
| `pyg-hetero`, enhanced | LEGNN as `HeteroConv` of `SAGEConv` or `GATConv` over three relations |

A training step is: training nodes selected, label edges made, forward, loss over the predicted nodes, backward, Adam.
Inference is a forward pass in evaluation mode with every training label shown. All models have three layers and the
library's defaults for graphs with many labels around them. Ours, vanilla and enhanced, are timed in turns; memory is
that of each alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import torch

from benchmarks.measure import Measured, is_out_of_memory, measure, release, times_in_turns
from benchmarks.peers import HETERO, Runner, build_peer
from benchmarks.speed_report import Row, machine, print_machine, print_size, versions
from benchmarks.synthetic import SIZES, Workload, workload
from legnn.config import FEW_LABELS, GraphFacts, ResolvedSettings, Settings
from legnn.data import GraphData
from legnn.errors import InputError
from legnn.nn import LEGNN
from legnn.runs.device import hardware
from legnn.training import FullBatch, Objective, Task, make_adam

BACKBONES = ("gcn", "sage", "gat")
PRECISIONS = ("fp32", "tf32", "bf16")
PHASES = ("train", "inference")
LAYERS, DROPOUT = 3, 0.5
WARMUP = {"cuda": 5, "cpu": 1}
"""The first few calls: code is compiled, and on a GPU perhaps a CUDA graph captured."""


@dataclass(frozen=True)
class Case:
    """One implementation of one model."""

    implementation: str
    backbone: str
    labels: str


def build_ours(data: GraphData, settings: ResolvedSettings, device: torch.device, precision: str) -> Runner:
    """The library as `legnn.train` runs it. This is the one place that knows how its parts are put together."""
    model = LEGNN(data.x.size(1), len(data.class_names), settings.model)
    model.fit_scaler(data.x)
    model.to(device)
    task = Task.from_graph(data, device)
    capture = hardware(device).plan(device, device).capture
    batching = FullBatch(
        model,
        task,
        Objective(alpha=settings.train.alpha, uses_labels=model.uses_labels),
        make_adam(model.parameter_groups(settings.train.weight_decay), settings.train.lr, capture=capture),
        torch.Generator(device).manual_seed(0),
        dtype=hardware(device).precision(precision).dtype,
        capture=capture,
    )
    shown = task.train if model.uses_labels else task.train[:0]
    return Runner(lambda: batching.train_epoch(1), lambda: batching.all_logits(shown))


def settings_for(case: Case, work: Workload) -> ResolvedSettings:
    """The library's defaults for graphs with many labels, whatever the graph has, so that sizes can be compared."""
    chosen = Settings(preset="simple").override(
        {
            "model.backbone": case.backbone,
            "model.labels": case.labels,
            "model.hidden": work.channels,
            "model.layers": LAYERS,
            "model.attention.heads": work.heads,
            "model.dropout": DROPOUT,
        }
    )
    facts = GraphFacts(
        num_train=FEW_LABELS * work.classes,
        num_classes=work.classes,
        # the first rows are enough to see it, and this is asked for every case
        counts_features=replace(work.data, x=work.data.x[:10_000]).facts().counts_features,
        has_label_edges=False,
    )
    return chosen.resolve(facts)


def cases(backbones: list[str], peers: bool) -> list[tuple[Case, ...]]:
    """Ours together and each of its peers, backbone by backbone; one `HeteroConv` of `SAGEConv` serves two of them."""
    wanted: list[tuple[Case, ...]] = []
    for backbone in backbones:
        wanted.append((Case("legnn", backbone, "vanilla"), Case("legnn", backbone, "enhanced")))
        if peers:
            wanted += [(Case("pyg", backbone, "vanilla"),), (Case("pyg-hetero", HETERO[backbone], "enhanced"),)]
    return list(dict.fromkeys(wanted))


def build(case: Case, work: Workload, device: torch.device, precision: str) -> Runner:
    """Everything of one implementation on the device."""
    torch.manual_seed(0)
    settings = settings_for(case, work)
    if case.implementation == "legnn":
        return build_ours(work.data, settings, device, precision)
    return build_peer(work.data, settings, device, autocast=precision == "bf16" and device.type == "cuda")


def measure_together(
    makes: list[Callable[[], Runner]], device: torch.device, repeats: int
) -> list[dict[str, Measured]]:
    """Both phases of implementations that are compared: the memory of each alone, and then the times in turns."""
    if len(makes) == 1:
        return [measure_case(makes[0], device, repeats)]
    alone = [measure_case(make, device, 1) for make in makes]
    release(device)
    try:
        for phase, times in _time_together(makes, device, repeats).items():
            for measured, milliseconds in zip(alone, times, strict=True):
                measured[phase] = replace(
                    measured[phase], milliseconds=median(milliseconds), fastest_ms=min(milliseconds)
                )
        return alone
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    # no room for all of them at once
    return [measure_case(make, device, repeats) for make in makes]


def _time_together(
    makes: list[Callable[[], Runner]], device: torch.device, repeats: int
) -> dict[str, list[list[float]]]:
    """The times of each phase, of each implementation."""
    runners, warmup = [make() for make in makes], WARMUP[device.type]
    steps = {"train": [runner.train_step for runner in runners], "inference": [runner.inference for runner in runners]}
    return {phase: times_in_turns(steps[phase], device, repeats, warmup) for phase in PHASES}


def measure_case(make: Callable[[], Runner], device: torch.device, repeats: int) -> dict[str, Measured]:
    """Both phases of one implementation, which is alone on the device meanwhile."""
    release(device)
    try:
        runner = make()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return dict.fromkeys(PHASES, Measured(note="out of memory"))
    steps = {"train": runner.train_step, "inference": runner.inference}
    return {phase: measure(steps[phase], device, repeats, WARMUP[device.type]) for phase in PHASES}


def run_size(
    name: str, backbones: list[str], precisions: list[str], device: torch.device, repeats: int, peers: bool
) -> Iterator[Row]:
    """Every row of one size as soon as it is there."""
    work = workload(name)
    common = {"size": name, "nodes": work.nodes, "edges": work.edges, "channels": work.channels, "device": device.type}
    common |= {"repeats": repeats, "machine": machine(device), "versions": versions()}
    for precision in precisions:
        # of everything that is done in single precision, the peers' as well as ours
        torch.set_float32_matmul_precision(hardware(device).precision(precision).products)
        for together in cases(backbones, peers):
            makes = [partial(build, case, work, device, precision) for case in together]
            for case, phases in zip(together, measure_together(makes, device, repeats), strict=True):
                for phase, measured in phases.items():
                    yield {**asdict(case), "phase": phase, **asdict(measured), "precision": precision, **common}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = ", ".join(SIZES)
    parser.add_argument(
        "--size",
        nargs="+",
        help=f"a synthetic graph ({sizes}), or any data set that legnn.load knows by another name; "
        "data:cora is the real Cora (default: small)",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--backbone", nargs="+", choices=BACKBONES, default=list(BACKBONES))
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, help="default: fp32 on cpu, tf32 on cuda")
    parser.add_argument("--repeats", type=int, help="of which the median is taken (default: 3 on cpu, 10 on cuda)")
    parser.add_argument("--json", type=Path, help="write the rows there, after every one of them")
    parser.add_argument("--skip-peers", action="store_true", help="ours alone")
    options = parser.parse_args(arguments)
    on_gpu = options.device == "cuda"
    options.size = options.size or ["small"]
    options.precision = options.precision or ["tf32" if on_gpu else "fp32"]
    options.repeats = options.repeats or (10 if on_gpu else 3)
    if on_gpu and not torch.cuda.is_available():
        parser.error("--device cuda, but PyTorch sees no GPU here")
    if options.size and not on_gpu and "tf32" in options.precision:
        parser.error("tf32 is a precision of GPUs; give fp32 or bf16 with --device cpu")
    if options.repeats < 1:
        parser.error("--repeats must be 1 or more")
    return options


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure and print; returns the rows."""
    options = parse(arguments)
    rows: list[Row] = []
    for name in options.size:
        here: list[Row] = []
        try:
            for row in run_size(
                name,
                options.backbone,
                options.precision,
                torch.device(options.device),
                options.repeats,
                not options.skip_peers,
            ):
                here.append(row)
                _print_progress(row)
                if options.json:
                    # a run cut short keeps what it has
                    options.json.write_text(json.dumps(rows + here, indent=1) + "\n")
        except InputError as error:
            raise SystemExit(f"benchmarks.speed: {error}") from None
        print_size(here)
        rows += here
    print_machine(rows[0])
    return rows


def _print_progress(row: Row) -> None:
    """Print a row to stderr."""
    words = [row[key] for key in ("size", "precision", "implementation", "backbone", "labels", "phase")]
    time = row["note"] if row["milliseconds"] is None else f"{row['milliseconds']:.2f} ms"
    print(*words, time, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
