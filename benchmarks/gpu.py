"""The GPU tests and the speed that a GPU has to keep, in one command.

    python -m benchmarks.gpu --out gpu.json
    python -m benchmarks.gpu --out gpu.json --part cora mag

The command runs its parts one after the other, each in processes of its own and in less than ten minutes, and writes
their figures after each of them. A later call continues with the parts that this commit and device lack, and prints
all figures next to those of commit d5b7190 on an H200, the limits, and a verdict. Without a GPU the same parts run on
the CPU at toy size, without a verdict.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.speed import BACKBONES
from benchmarks.speed_report import Row, machine

ROOT = Path(__file__).resolve().parents[1]
PART_SECONDS = 590
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
TESTS = {
    "tests-ops": ["tests/ops"],
    "tests-layers": ["tests/nn", "tests/graph"],
    "tests-training": ["tests/training"],
    "tests-others": ["tests", *(f"--ignore=tests/{name}" for name in ("ops", "nn", "graph", "training"))],
}


class Reference(NamedTuple):
    """A figure of commit d5b7190 on an H200, if it is known, and the limit, if there is one."""

    before: float | None = None
    limit: float | None = None


REFERENCES = {
    "arxiv tf32 gcn, ms": Reference(18.3, 20.0),
    "arxiv tf32 sage, ms": Reference(18.2, 20.0),
    "arxiv tf32 gat, ms": Reference(21.0, 23.5),
    "arxiv bf16 gcn, ms": Reference(9.1, 10.5),
    "arxiv bf16 sage, ms": Reference(8.9, 10.5),
    "arxiv bf16 gat, ms": Reference(12.2, 14.0),
    "arxiv tf32 gcn, over vanilla": Reference(1.021, 1.06),
    "arxiv tf32 sage, over vanilla": Reference(1.017, 1.06),
    "arxiv tf32 gat, over vanilla": Reference(1.016, 1.06),
    "arxiv bf16 gcn, over vanilla": Reference(1.024, 1.08),
    "arxiv bf16 sage, over vanilla": Reference(1.027, 1.08),
    "arxiv bf16 gat, over vanilla": Reference(1.027, 1.08),
    "arxiv tf32 gat, GiB": Reference(4.37, 4.6),
    "cora tf32 gcn, ms": Reference(0.71, 1.3),
    "cora tf32 gat, ms": Reference(0.93, 1.6),
    "mag epoch, s": Reference(1.91, 1.95),
    "auto cora, candidates": Reference(),
    **{f"{name}, failed": Reference(0, 0) for name in TESTS},
}

Figures = dict[str, float]


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process of its own."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PART_SECONDS)


def run_for_rows(module: str, *words: str) -> list[Row]:
    """The rows that a benchmark writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        ended = run("-m", f"benchmarks.{module}", *words, "--device", DEVICE, "--json", file)
        if ended.returncode:
            raise SystemExit(f"benchmarks.{module} failed\n{ended.stderr}")
        return json.loads(file.read_text())


def run_tests(name: str) -> Figures:
    """How many tests fail; those of one folder without a GPU, where all are skipped."""
    workers = ["-n", "8"] if ON_GPU else []
    ended = run("-m", "pytest", "-m", "gpu", "-q", *workers, *TESTS[name])
    # 5: none of these tests is for a GPU
    if ended.returncode not in (0, 5):
        print(ended.stdout[-5000:], ended.stderr[-1000:], file=sys.stderr)
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {f"{name}, failed": len(failed) or ended.returncode not in (0, 5)}


def measure_steps(size: str, precisions: list[str]) -> Figures:
    """Label-enhanced training steps, the same over vanilla ones, and the memory of GAT."""
    words = ["--size", size if ON_GPU else "tiny", "--repeats", "40" if ON_GPU else "1", "--skip-peers"]
    # on a CPU single precision has another name
    single = "tf32" if ON_GPU else "fp32"
    rows = run_for_rows("speed", *words, "--precision", *(name.replace("tf32", single) for name in precisions))
    steps = {
        (row["precision"].replace(single, "tf32"), row["backbone"], row["labels"]): row
        for row in rows
        if row["implementation"] == "legnn" and row["phase"] == "train"
    }
    figures = {}
    for precision in precisions:
        for backbone in BACKBONES:
            enhanced, vanilla = (steps[precision, backbone, labels] for labels in ("enhanced", "vanilla"))
            name = f"{size} {precision} {backbone}"
            figures[f"{name}, ms"] = enhanced["milliseconds"]
            figures[f"{name}, over vanilla"] = enhanced["milliseconds"] / vanilla["milliseconds"]
            figures[f"{name}, GiB"] = enhanced["peak_gib"]
    return figures


def measure_epoch() -> Figures:
    """An epoch of mini-batches of a graph of ogbn-mag's size."""
    words = ["--size", "mag", "--precision", "tf32"] if ON_GPU else ["--size", "tiny", "--batch", "32"]
    (row,) = run_for_rows("epochs", *words, "--backbones", "sage")
    return {"mag epoch, s": row["epoch_s"]}


def measure_search() -> Figures:
    """How many candidates a search finishes in a minute."""
    with tempfile.TemporaryDirectory() as folder:
        data, budget = ("cora", "60s") if ON_GPU else ("digits", "3s")
        out = Path(folder) / "search"
        ended = run("-m", "legnn", "auto", data, "--budget", budget, "--device", DEVICE, "--out", out)
        if ended.returncode:
            raise SystemExit(f"legnn auto failed\n{ended.stderr}")
        with (out / "leaderboard.csv").open(newline="") as file:
            return {"auto cora, candidates": len({row["name"] for row in csv.DictReader(file)})}


PARTS: dict[str, Callable[[], Figures]] = {
    **{name: partial(run_tests, name) for name in TESTS},
    "arxiv-tf32": partial(measure_steps, "arxiv", ["tf32"]),
    "arxiv-bf16": partial(measure_steps, "arxiv", ["bf16"]),
    "cora": partial(measure_steps, "cora", ["tf32"]),
    "mag": measure_epoch,
    "auto": measure_search,
}


def table(figures: Figures, *, on_gpu: bool) -> list[str]:
    """A line for each figure that has a reference, and the verdict."""
    lines = ["| | d5b7190 | now | limit | |", "|---|---|---|---|---|"]
    misses = 0
    for name, (before, limit) in REFERENCES.items():
        if name not in figures:
            continue
        excess = 0.0 if limit is None else figures[name] - limit
        misses += excess > 0
        verdict = "" if limit is None else "ok" if excess <= 0 else f"miss by {excess:.3g}"
        before_words, limit_words = ("–" if value is None else f"{value:g}" for value in (before, limit))
        lines.append(f"| {name} | {before_words} | {figures[name]:.3g} | {limit_words} | {verdict if on_gpu else ''} |")
    if not on_gpu:
        return [*lines, "", "no verdict: the CPU ran everything at toy size"]
    missing = [name for name in REFERENCES if name not in figures]
    state = f"; not measured yet: {', '.join(missing)}" if missing else ""
    return [*lines, "", f"verdict: {misses} of {len(figures.keys() & REFERENCES)} figures miss their limit{state}"]


def main(arguments: list[str] | None = None) -> list[str]:
    """Run the parts and print all figures; returns the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=[], help="run these, again if need be")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="write the figures there [gpu.json]")
    options = parser.parse_args(arguments)
    if not ON_GPU:
        print("no GPU here: all parts run on the CPU at toy size, and their figures mean nothing", file=sys.stderr)
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    subject = f"{git.stdout.strip() or 'no commit'} on {machine(torch.device(DEVICE))}"
    results: dict[str, dict[str, Figures]] = json.loads(options.out.read_text()) if options.out.is_file() else {}
    measured = results.setdefault(subject, {})
    for name in options.part or [name for name in PARTS if name not in measured]:
        print(f"{name} …", file=sys.stderr, flush=True)
        measured[name] = PARTS[name]()
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    figures = {name: value for part in measured.values() for name, value in part.items()}
    lines = [subject, "", *table(figures, on_gpu=ON_GPU)]
    print(*lines, sep="\n")
    return lines


if __name__ == "__main__":
    main()
