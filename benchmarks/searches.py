"""Many small runs of mixed settings, as `legnn reproduce` trains them: in many processes, and in turns in a few.

    python -m benchmarks.searches --data cora --runs 30 --epochs 200 --device cuda
    python -m benchmarks.searches --runs 6 --epochs 20 --device cpu --shapes 1x1,3x1

A shape `AxP` is `A` runs at a time in `P` processes. Seconds count the start of the processes; the rate after the start
is that of the runs that ended after the first one. Every shape is compared with the first to the bit. Kernels are
compiled before, in short runs that are not counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.seeds import same_run
from legnn.experiments.execution import Progress, train_missing
from legnn.experiments.planned import PlannedRun
from legnn.training.cuda_graph import WARM_UP

MIXED = [
    {"backbone": backbone, "labels": labels}
    for backbone in ("gcn", "sage", "gat")
    for labels in ("enhanced", "vanilla")
]
"""Settings of the runs, one after the other, each with further seeds."""


def main() -> None:
    """Prints a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shapes", default="8x8,8x1,16x2,32x4", help="AxP joined by commas")
    options = parser.parse_args()
    given = {"epochs": options.epochs, "patience": options.epochs, "device": options.device}
    each = -(-options.runs // len(MIXED))
    every = [(values, seed) for values in MIXED for seed in range(each)][: options.runs]
    runs = [PlannedRun.of(options.data, "simple", {**given, **values}, seed) for values, seed in every]
    print(f"{options.data}, {len(runs)} runs of {options.epochs} epochs on {options.device}\n")
    columns = ("at a time", "processes", "seconds", "runs a second", "after the start", "equal to the bit")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    with tempfile.TemporaryDirectory() as place:
        short = {**given, "epochs": WARM_UP + 2}
        warm = [PlannedRun.of(options.data, "simple", {**short, **values}, 0) for values in MIXED]
        train_missing(lambda: warm, Path(place) / "warm", len(warm), processes=1)
        first: Path | None = None
        for number, shape in enumerate(options.shapes.split(",")):
            jobs, processes = map(int, shape.split("x"))
            out = Path(place) / f"{number}-{shape}"
            _print_row(runs, out, jobs, processes, first)
            first = first or out


def _print_row(runs: list[PlannedRun], out: Path, jobs: int, processes: int, first: Path | None) -> None:
    ended: list[float] = []

    def note(progress: Progress) -> None:
        ended.extend([time.perf_counter()] * (progress.done - len(ended)))

    begin = time.perf_counter()
    progress = train_missing(
        lambda: [run for run in runs if run.finished(out) is None], out, jobs, processes=processes, on_progress=note
    )
    seconds = time.perf_counter() - begin
    for outcome in progress.failed:
        print(f"failed: {outcome.error}")
    rate = (len(ended) - 1) / max(ended[-1] - ended[0], 1e-9) if len(ended) > 1 else float("nan")
    same = (
        "" if first is None else f"{sum(same_run(run.folder(first), run.folder(out)) for run in runs)} of {len(runs)}"
    )
    print(
        f"| {jobs} | {processes} | {seconds:.1f} | {len(ended) / seconds:.2f} | {rate:.2f} | {same} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
