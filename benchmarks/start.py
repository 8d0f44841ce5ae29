"""Seconds from a command in a shell to its first output, its first epoch and its end, in processes of their own.

    python -m benchmarks.start
    python -m benchmarks.start --repeats 5 --only "train digits --preset simple" predict

"first time" is with empty caches of compiled kernels, "later" with those of an earlier run. Output goes to a terminal.
The processes run one after the other and take turns, so that what else the machine does is the same for all. The last
column names modules that were imported and that a command of its kind does not need.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import legnn

RUN, OUT = "RUN", "OUT"
"""Places in a command: a finished run, and a new folder."""

COMMANDS = {
    "--version": False,
    "--help": False,
    "train digits --no-such-option": False,
    f"train digits --preset simple --epochs 1 --out {OUT}": True,
    f"train digits --preset simple --out {OUT}": True,
    f"train digits --out {OUT}": True,
    f"predict {RUN} --out {OUT}.parquet": True,
}
"""The commands, and whether they compute."""

UNNEEDED = ("torch_geometric", "torch._dynamo", "sklearn", "scipy.sparse", "sympy", "matplotlib", "numba.np.linalg")
UNNEEDED_WITHOUT_COMPUTING = ("torch", "numpy", "pandas", "numba", "pyarrow", "yaml")
LIST_MODULES = """
import atexit, sys
path = sys.argv.pop(1)
atexit.register(lambda: open(path, "w").write(" ".join(sys.modules)))
sys.argv[0] = "legnn"
from legnn.cli import main
main()
"""
POLL_SECONDS = 0.005


@dataclass
class Seconds:
    """When things happened in the processes of one command."""

    first_output: list[float] = field(default_factory=list)
    first_epoch: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)


def run_once(command: list[str], environment: dict[str, str], metrics: Path, seconds: Seconds) -> None:
    """Runs a command and adds its times."""
    terminal, child = pty.openpty()
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=child, stderr=child, env=environment)
    os.close(child)
    first_output = first_epoch = None
    is_open = True
    while is_open:
        ready, _, _ = select.select([terminal], [], [], POLL_SECONDS)
        if ready:
            try:
                is_open = bool(os.read(terminal, 1 << 16))
            except OSError:  # the other end was closed
                is_open = False
            if is_open and first_output is None:
                first_output = time.perf_counter() - begin
        if first_epoch is None and metrics.is_file():
            first_epoch = time.perf_counter() - begin
    process.wait()
    os.close(terminal)
    seconds.end.append(time.perf_counter() - begin)
    if first_output is not None:
        seconds.first_output.append(first_output)
    if first_epoch is not None:
        seconds.first_epoch.append(first_epoch)


def imported(words: list[str], environment: dict[str, str], computes: bool, path: Path) -> list[str]:
    """Returns modules that a command imports and does not need."""
    command = [sys.executable, "-c", LIST_MODULES, str(path), *words]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    modules = set(path.read_text().split())
    unneeded = UNNEEDED if computes else (*UNNEEDED, *UNNEEDED_WITHOUT_COMPUTING)
    return [name for name in unneeded if name in modules]


def words_of(command: str, run: Path, out: Path) -> list[str]:
    """Returns the arguments with the places filled in."""
    return [word.replace(RUN, str(run)).replace(OUT, str(out)) for word in shlex.split(command)]


def cell(values: list[float]) -> str:
    """Returns the least and the median."""
    return f"{min(values):.2f} ({statistics.median(values):.2f})" if values else ""


def main() -> None:
    """Prints a table of the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[""], help="commands that begin with one of these")
    arguments = parser.parse_args()
    chosen = {command: computes for command, computes in COMMANDS.items() if command.startswith(tuple(arguments.only))}
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(chosen, arguments.repeats, Path(folder))
    print(
        f"legnn {legnn.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores: seconds, best (median)\n"
    )
    print("| command | kernels | first output | first epoch | end | imported without need |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(row, flush=True)


def measure(chosen: dict[str, bool], repeats: int, folder: Path) -> list[str]:
    """Returns the rows of the table."""
    # bytecode is kept, as installing a package does: the turn before the first writes it
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    warm = {**inherited, "NUMBA_CACHE_DIR": str(folder / "kernels"), "TERM": "xterm", "COLUMNS": "80"}
    run = folder / "run"
    program = [sys.executable, "-m", "legnn"]
    train = ["train", "digits", "--preset", "simple", "--out", str(run)]
    subprocess.run([*program, *train], env=warm, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    number = 0
    measured: dict[tuple[str, str], Seconds] = {}
    for turn in range(repeats + 1):
        for command, computes in chosen.items():
            for kernels in ("first time", "later") if computes else ("",):
                out = folder / f"out{number}"
                number += 1
                cold = {**warm, "NUMBA_CACHE_DIR": str(folder / f"kernels{number}")}
                # the turn before the first reads files and compiles kernels that the later ones find
                seconds = measured.setdefault((command, kernels), Seconds()) if turn else Seconds()
                if turn == 0 and kernels == "first time":
                    continue
                environment = cold if kernels == "first time" else warm
                run_once([*program, *words_of(command, run, out)], environment, out / "metrics.jsonl", seconds)
    rows = []
    for (command, kernels), seconds in measured.items():
        computes = chosen[command]
        out = folder / f"out{number}"
        number += 1
        needless = "" if kernels == "first time" else ", ".join(
            imported(words_of(command, run, out), warm, computes, folder / "modules")
        ) or "none"  # fmt: skip
        times = (seconds.first_output, seconds.first_epoch, seconds.end)
        rows.append(f"| `legnn {command}` | {kernels} | {' | '.join(map(cell, times))} | {needless} |")
    return rows


if __name__ == "__main__":
    main()
