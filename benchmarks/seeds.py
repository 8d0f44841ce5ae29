"""Several seeds at once: seconds beside those of one run and of one after the other, and whether the bits are equal.

    python -m benchmarks.seeds --data cora --seeds 10 --epochs 300 --device cuda
    python -m benchmarks.seeds --data cora --seeds 10 --epochs 300 --device cpu --cold

Every run writes its folder. Runs in this process come after a first one that compiles what is compiled once; `--cold`
times whole commands, which start Python and read the data, as well. A run stops after exactly `--epochs` epochs.
What is compared is timed in turns, `--repeats` times, and medians count: the speed of machines changes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

import legnn
from legnn.data import GraphData
from legnn.runs import RunFolder


def main() -> None:
    """Prints one table of seconds, and one of memory on a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--preset", default="simple")
    parser.add_argument("--repeats", type=int, default=1, help="the median of them counts")
    parser.add_argument("--cold", action="store_true", help="time whole commands, too")
    parser.add_argument("--memory", type=int, default=30, help="runs after which memory is looked at")
    options = parser.parse_args()
    given = {"device": options.device, "epochs": options.epochs, "patience": options.epochs}
    graph = legnn.load(options.data)
    print(f"{options.data}, {options.preset}, {options.epochs} epochs on {options.device}, {options.seeds} seeds\n")
    print("| | seconds | of one run | equal to the bit |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        _time_runs(graph, options, given, Path(folder))
    if options.cold:
        with tempfile.TemporaryDirectory() as folder:
            _time_commands(options, given, Path(folder))
    if options.device == "cuda" and options.memory:
        _measure_memory(graph, options, given)


def _time_runs(graph: GraphData, options: argparse.Namespace, given: dict[str, Any], folder: Path) -> None:
    settings = legnn.Settings(preset=options.preset)
    legnn.train(graph, settings, **given)

    def alone(name: str, seeds: int) -> None:
        for seed in range(seeds):
            legnn.train(graph, settings, seed=seed, out=folder / name / f"seed-{seed}", **given)

    def together(name: str) -> None:
        legnn.train_seeds(graph, settings, seeds=options.seeds, out=folder / name, **given)

    one, each, both = _medians_in_turns(
        options.repeats,
        lambda k: alone(f"one-{k}", 1),
        lambda k: alone(f"each-{k}", options.seeds),
        lambda k: together(f"together-{k}"),
    )
    same = [
        same_run(folder / "each-0" / f"seed-{s}", folder / "together-0" / f"seed-{s}") for s in range(options.seeds)
    ]
    _print_row("one run", one, one)
    _print_row("one after the other", each, one)
    _print_row("at once", both, one, f"{sum(same)} of {len(same)}")


def _time_commands(options: argparse.Namespace, given: dict[str, Any], folder: Path) -> None:
    def command(name: str, *more: str) -> None:
        settings = [word for key, value in given.items() for word in (f"--{key}", str(value))]
        words = [sys.executable, "-m", "legnn", "train", options.data, "--preset", options.preset, *settings, *more]
        subprocess.run([*words, "--out", str(folder / name)], check=True, capture_output=True)

    one, several = _medians_in_turns(
        options.repeats,
        lambda k: command(f"one-{k}"),
        lambda k: command(f"seeds-{k}", "--seeds", str(options.seeds)),
    )
    _print_row("command with one seed", one, one)
    _print_row(f"command with --seeds {options.seeds}", several, one)


def _medians_in_turns(repeats: int, *runs: Callable[[int], object]) -> list[float]:
    """The median seconds of each of `runs`, which take turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for k in range(repeats):
        for own, run in zip(seconds, runs, strict=True):
            begin = time.perf_counter()
            run(k)
            own.append(time.perf_counter() - begin)
    return [median(own) for own in seconds]


def _print_row(name: str, seconds: float, one: float, same: str = "") -> None:
    print(f"| {name} | {seconds:.2f} | {seconds / one:.2f}× | {same} |", flush=True)


def same_run(one: Path, other: Path) -> bool:
    """Whether the weights, predictions and metrics of two run folders are the same to the bit."""
    mine, theirs = RunFolder(one), RunFolder(other)
    weights, others = mine.weights(), theirs.weights()
    is_same = all(torch.equal(weights[name], others[name]) for name in weights)
    return is_same and mine.predictions().equals(theirs.predictions()) and mine.logs() == theirs.logs()


def _measure_memory(graph: GraphData, options: argparse.Namespace, given: dict[str, Any]) -> None:
    """Prints the memory of the GPU after some short runs one after the other, and after groups of them."""
    settings, short = legnn.Settings(preset=options.preset), {**given, "epochs": 10}
    kinds: dict[str, Callable[[int], object]] = {
        "runs": lambda k: legnn.train(graph, settings, seed=k, **short),
        "groups": lambda k: legnn.train_seeds(graph, settings, seeds=4, **short),
    }
    print("\n| after | reserved MiB | used MiB |\n|---|---|---|")
    for name, train in kinds.items():
        for k in range(1, options.memory + 1):
            train(k)
            if k in (1, 3, 10, options.memory):
                torch.cuda.synchronize()
                free, total = torch.cuda.mem_get_info()
                used = (total - free) / 2**20
                print(f"| {k} {name} | {torch.cuda.memory_reserved() / 2**20:.0f} | {used:.0f} |", flush=True)


if __name__ == "__main__":
    main()
