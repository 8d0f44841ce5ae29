"""The speed on two CPU cores that a change has to keep: two checkouts of the project, measured alternately.

    python -m benchmarks.compare ../before . --out compare.json
    python -m benchmarks.compare ../before . --rows step-fp32-gat start --pairs 1

Every measurement runs in processes of its own with `PYTHONPATH` set to one checkout, and uses only what both
checkouts have: the `legnn` command, `legnn.train`, and the JSON rows of `benchmarks.speed`. OpenMP threads wait as
each checkout sets it for its command. A pair measures one
checkout and then the other, every second pair in reverse order. A figure is the median of all pairs. With `--out`,
results are written after every measurement, and a later call continues from them. Set `LEGNN_DATA` to the folder of
the graphs.

| `--rows` | measured |
|---|---|
| `step-PRECISION-BACKBONE` | ms of a training step on the small graph of `benchmarks.speed`, and `HeteroConv` over it |
| `debian-hetero` | seconds of a mini-batch epoch, its validation included |
| `auto-cora` | candidates that a search finishes in its budget, and the validation accuracy; pair k has seed k |
| `start` | seconds of `legnn train digits` with an empty cache of kernels, and with a filled one |
| `busy-digits`, `busy-gcnii` | a training command next to two endless loops, over the same command alone |
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import median

Figures = dict[str, float]
"""The figures of one measurement by the name of their row."""

EPOCHS = 6
"""Epochs of a timed run; the first two compile kernels and fill caches, and are not counted."""
TIME_EPOCHS = f"""
import benchmarks  # sets the environment that the command has
import time, legnn
times = []
legnn.train("debian-hetero", preset="simple", batch=1024, epochs={EPOCHS}, device="cpu",
            on_epoch=lambda log: times.append(time.perf_counter()))
print(*times)
"""
BUSY = {
    "busy-digits": ["train", "digits"],
    "busy-gcnii": ["train", "cora", "--preset", "gcnii", "--epochs", "40"],
}
BUSY_PROCESSES = 2
# a loop ends with the process that started it, however that ends
ENDLESS_LOOP = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"


@dataclass(frozen=True)
class Limit:
    """What the new figure must satisfy."""

    value: float
    is_ratio: bool = False
    """The limit is for the new figure over the old one."""
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g}{'× old' if self.is_ratio else ''}"

    def is_met(self, old: float, new: float) -> bool:
        """Whether `new` satisfies the limit."""
        figure = new / old if self.is_ratio else new
        return figure >= self.value if self.at_least else figure <= self.value


LIMITS = {
    **{f"step {p} {b} {u}, ms": Limit(1.15, is_ratio=True)
       for p, b, u in product(("fp32", "bf16"), ("gcn", "sage", "gat"), ("vanilla", "enhanced"))},
    "HeteroConv over step fp32 sage": Limit(2.5, at_least=True),
    "HeteroConv over step fp32 gat": Limit(6, at_least=True),
    "HeteroConv over step bf16 sage": Limit(8, at_least=True),
    "HeteroConv over step bf16 gat": Limit(17, at_least=True),
    "debian-hetero epoch, s": Limit(1.1, is_ratio=True),
    "auto cora, candidates": Limit(0.7, is_ratio=True, at_least=True),
    # a standard error of the accuracy on 500 validation nodes is .018
    "auto cora, validation accuracy": Limit(0.98, is_ratio=True, at_least=True),
    "train digits, first start, s": Limit(9),
    "train digits, later start, s": Limit(6),
    "busy-digits over alone": Limit(3),
    "busy-gcnii over alone": Limit(3),
}  # fmt: skip


@dataclass(frozen=True)
class Checkout:
    """One of the two code bases, and a folder for what its processes write."""

    path: Path
    scratch: Path

    def run(self, *words: str | Path, caches: str = "caches") -> str:
        """Runs Python with this code base and returns what it prints; `caches` names the folder of its caches."""
        folder = str(self.scratch / caches)
        # the numbers of threads and how they wait are those that the library sets
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment |= {"PYTHONPATH": f"{self.path / 'src'}{os.pathsep}{self.path}"}
        environment |= {"NUMBA_CACHE_DIR": folder, "XDG_CACHE_HOME": folder}
        command = [sys.executable, *map(str, words)]
        ended = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"{' '.join(command)} failed in {self.path}:\n{ended.stderr}")
        return ended.stdout

    def seconds(self, *words: str, caches: str = "caches") -> float:
        """The time of a `legnn` command that trains, from its start to its end."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as out:
            begin = time.perf_counter()
            self.run("-m", "legnn", *words, "--out", Path(out) / "run", caches=caches)
            return time.perf_counter() - begin


@contextmanager
def busy_machine() -> Iterator[None]:
    """Other processes that never wait, while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", ENDLESS_LOOP]) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure_steps(precision: str, backbone: str, checkout: Checkout, pair: int, options: argparse.Namespace) -> Figures:
    """Steps with and without labels, and those of the peers in the same call."""
    with tempfile.TemporaryDirectory(dir=checkout.scratch) as folder:
        file = Path(folder) / "rows.json"
        words = ["--size", options.size, "--precision", precision, "--backbone", backbone, "--repeats", "5"]
        # GCN has no `HeteroConv` peer of its own
        words += ["--skip-peers"] if backbone == "gcn" else []
        checkout.run("-m", "benchmarks.speed", *words, "--json", file)
        rows = json.loads(file.read_text())
    steps = {(row["implementation"], row["labels"]): row["milliseconds"] for row in rows if row["phase"] == "train"}
    step = f"step {precision} {backbone}"
    figures = {f"{step} {labels}, ms": steps["legnn", labels] for labels in ("vanilla", "enhanced")}
    if backbone != "gcn":
        ratio = steps["pyg-hetero", "enhanced"] / steps["legnn", "enhanced"]
        figures[f"HeteroConv over {step}"] = ratio
    return figures


def measure_epoch(checkout: Checkout, pair: int, options: argparse.Namespace) -> Figures:
    """The median epoch of mini-batch training."""
    ends = [float(word) for word in checkout.run("-c", TIME_EPOCHS).split()[-EPOCHS:]]
    return {"debian-hetero epoch, s": median(end - begin for begin, end in pairwise(ends[1:]))}


def measure_search(checkout: Checkout, pair: int, options: argparse.Namespace) -> Figures:
    """How far a search comes."""
    with tempfile.TemporaryDirectory(dir=checkout.scratch) as folder:
        out = Path(folder) / "search"
        words = ["--budget", options.budget, "--seed", str(pair), "--device", "cpu", "--out", out]
        checkout.run("-m", "legnn", "auto", "cora", *words)
        with (out / "leaderboard.csv").open(newline="") as file:
            # a candidate has a second row with its predictions smoothed
            finished = {row["name"] for row in csv.DictReader(file)}
        accuracy = json.loads((out / "result.json").read_text())["val"]["accuracy"]
    return {"auto cora, candidates": len(finished), "auto cora, validation accuracy": accuracy}


def measure_start(checkout: Checkout, pair: int, options: argparse.Namespace) -> Figures:
    """The first run of the library after its installation, and the next one."""
    caches = f"caches-{pair}"
    first, later = (checkout.seconds("train", "digits", caches=caches) for _ in range(2))
    return {"train digits, first start, s": first, "train digits, later start, s": later}


def measure_busy(name: str, checkout: Checkout, pair: int, options: argparse.Namespace) -> Figures:
    """How much longer a command takes on a machine that does something else, too."""
    checkout.seconds(*BUSY[name])  # compiles kernels
    alone = checkout.seconds(*BUSY[name])
    with busy_machine():
        busy = checkout.seconds(*BUSY[name])
    return {f"{name} over alone": busy / alone}


MEASUREMENTS: dict[str, Callable[[Checkout, int, argparse.Namespace], Figures]] = {
    **{f"step-{p}-{b}": partial(measure_steps, p, b) for p, b in product(("fp32", "bf16"), ("gcn", "sage", "gat"))},
    "debian-hetero": measure_epoch,
    "auto-cora": measure_search,
    "start": measure_start,
    **{name: partial(measure_busy, name) for name in BUSY},
}


def measure_all(options: argparse.Namespace) -> dict[str, Figures]:
    """Figures by measurement, pair and checkout, with those that `--out` has already."""
    results: dict[str, Figures] = {}
    if options.out and options.out.is_file():
        results = json.loads(options.out.read_text())
    with tempfile.TemporaryDirectory() as folder:
        checkouts = {}
        for side, path in (("old", options.old), ("new", options.new)):
            (scratch := Path(folder) / side).mkdir()
            checkouts[side] = Checkout(path.resolve(), scratch)
            # bytecode is written when a package is installed
            subprocess.run([sys.executable, "-m", "compileall", "-q", str(path / "src")], check=True)
        for pair, name in product(range(options.pairs), options.rows):
            for side in ("old", "new") if pair % 2 == 0 else ("new", "old"):
                key = f"{name} {pair} {side}"
                if key in results:
                    continue
                print(f"{key}: load {os.getloadavg()[0]:.2f} before", file=sys.stderr, flush=True)
                results[key] = MEASUREMENTS[name](checkouts[side], pair, options)
                print(f"{key}: {results[key]}", file=sys.stderr, flush=True)
                if options.out:
                    options.out.write_text(json.dumps(results, indent=1) + "\n")
    return results


def table(results: dict[str, Figures], pairs: int, names: list[str]) -> list[str]:
    """A line for each row: medians of the pairs, their ratio, the limit and whether it is met."""
    lines = ["| | old | new | ratio | limit | |", "|---|---|---|---|---|---|"]
    for name in names:
        by_side = {side: [results[f"{name} {pair} {side}"] for pair in range(pairs)] for side in ("old", "new")}
        for row in by_side["old"][0]:
            old, new = (median(figures[row] for figures in by_side[side]) for side in ("old", "new"))
            verdict = "ok" if LIMITS[row].is_met(old, new) else "miss"
            lines.append(f"| {row} | {old:.4g} | {new:.4g} | {new / old:.3f} | {LIMITS[row]} | {verdict} |")
    return lines


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="checkout before the change")
    parser.add_argument("new", type=Path, help="checkout with it")
    parser.add_argument("--rows", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS), metavar="NAME")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--size", default="small", help="graph of the steps, as in benchmarks.speed")
    parser.add_argument("--budget", default="60s", help="of the search")
    parser.add_argument("--out", type=Path, help="write the results there as they come, and continue from them")
    options = parser.parse_args(arguments)
    if options.pairs < 1:
        parser.error("--pairs must be 1 or more")
    return options


def main(arguments: list[str] | None = None) -> list[str]:
    """Measure and print; returns the lines of the table."""
    options = parse(arguments)
    lines = table(measure_all(options), options.pairs, options.rows)
    print(*lines, sep="\n")
    return lines


if __name__ == "__main__":
    main()
