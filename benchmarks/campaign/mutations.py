"""Mutations of tables, run folders, prepared folders, caches and settings, each followed by what a user would do.

    python -m benchmarks.campaign mutations --count 2000 --seed 0
    python -m benchmarks.campaign mutations --seed 0 --only 1234

A mutation follows from the seed and its number alone. It is refused in one sentence, or gives the same result to the
bit, or (tables and settings) a result of what was really given; anything else is a failure. Batches run in a process
of their own, so that a signal or a hang of one is counted and the others go on.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.campaign.worker import kind_of

WORKER = "benchmarks.campaign.worker"
BATCH = 100
"""Mutations of one process."""
LIMIT = 30.0
"""Seconds of a processor for one mutation."""
IDLE = 20
"""So many times as long it may wait: the machine may be busy."""
FAILURES = ("traceback", "signal", "hang", "silent other result", "lost", "not one sentence")
VERDICTS = ("refused", "same", "other, said", *FAILURES)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A mutation and what came of it."""

    number: int
    kind: str
    about: str
    verdict: str
    message: str
    seconds: float = 0.0

    @property
    def is_failure(self) -> bool:
        """Whether the library did what it must not."""
        return self.verdict in FAILURES


def run_mutations(
    numbers: Iterable[int],
    seed: int,
    *,
    limit: float = LIMIT,
    batch: int = BATCH,
    worker: str = WORKER,
    specimens: Path | None = None,
) -> Iterator[Mutation]:
    """Yields the verdicts on mutations of a seed, in order.

    Args:
        numbers: of the mutations.
        seed: of all of them.
        limit: seconds of a processor for one.
        batch: mutations of one process.
        worker: the module that makes them.
        specimens: a folder that `make_specimens` filled; made for this call if none is given.
    """
    with tempfile.TemporaryDirectory(prefix="campaign-") as name:
        if specimens is None:
            specimens = Path(name) / "specimens"
            make_specimens(specimens, worker)
        left = [*numbers]
        while left:
            with tempfile.TemporaryDirectory(dir=name) as place:
                done = 0
                for found in _run_batch(worker, specimens, Path(place), seed, left[:batch], limit):
                    done += 1
                    yield found
            left = left[done:]


def make_specimens(folder: Path, worker: str = WORKER) -> None:
    """Fills `folder` with what mutations are made of."""
    subprocess.run([sys.executable, "-m", worker, str(folder)], check=True, env=_environment())


def _run_batch(
    worker: str, specimens: Path, place: Path, seed: int, numbers: list[int], limit: float
) -> Iterator[Mutation]:
    """Yields verdicts until all are there or the process has ended, whose end is the verdict on the last one."""
    command = [sys.executable, "-m", worker, str(specimens), "--place", str(place), "--seed", str(seed)]
    command += ["--numbers", ",".join(map(str, numbers))]
    errors = place / "stderr"
    with errors.open("wb") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True, env=_environment())
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    begun: dict[str, object] = {}
    done, is_late = 0, False
    try:
        while True:
            line = _next(process, lines, limit)
            if not line:
                break
            said = json.loads(line)
            if "verdict" in said:
                done += 1
                begun = {}
                yield Mutation(**said)
            else:
                begun = said
    except queue.Empty:
        # the worker says where it is, and ends
        process.send_signal(signal.SIGABRT)
        is_late = True
    code = process.wait()
    if done < len(numbers):
        number = numbers[done]
        about = {"number": number, "kind": kind_of(number), "about": "it was not made", **begun}
        verdict, message = _explain_end(code, errors.read_text(errors="replace"))
        verdict = "hang" if is_late else verdict
        yield Mutation(**about, verdict=verdict, message=message, seconds=limit)


def _next(process: subprocess.Popen[str], lines: queue.Queue[str], limit: float) -> str:
    """Returns the next line; raises `queue.Empty` when the process has computed or waited for too long."""
    begin, used = time.monotonic(), _cpu_seconds(process.pid)
    while True:
        try:
            return lines.get(timeout=0.5)
        except queue.Empty:
            if _cpu_seconds(process.pid) - used > limit or time.monotonic() - begin > IDLE * limit:
                raise


def _cpu_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def _explain_end(code: int, errors: str) -> tuple[str, str]:
    """Returns the verdict on a mutation in which its process ended."""
    if code < 0:
        frames = [line.strip() for line in errors.splitlines() if "/legnn/" in line]
        return "signal", f"{signal.Signals(-code).name}: {' < '.join(frames[:3])}"
    return "traceback", f"exit code {code}: {errors[-500:]}"


def _environment() -> dict[str, str]:
    # one thread: the graphs are tiny, and results are compared to the bit
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def markdown(found: Iterable[Mutation]) -> str:
    """Returns a table of the counts by kind and verdict."""
    counts = Counter((one.kind, one.verdict) for one in found)
    kinds = [*dict.fromkeys(kind for kind, _ in counts)]
    lines = [f"| | {' | '.join(VERDICTS)} | all |", f"|---{'|---:' * (len(VERDICTS) + 1)}|"]
    for kind in [*sorted(kinds), "all"]:
        row = [sum(n for (k, v), n in counts.items() if v == verdict and kind in (k, "all")) for verdict in VERDICTS]
        lines.append(f"| {kind} | {' | '.join(map(str, row))} | {sum(row)} |")
    return "\n".join(lines)


def add_command(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand."""
    parser = commands.add_parser("mutations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutations to repeat")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a mutation")
    parser.add_argument("--json", type=Path, help="file for every mutation and its verdict, a line each")
    parser.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    numbers = given.only or range(given.count)
    found: list[Mutation] = []
    lines = given.json.open("w") if given.json else None
    for one in run_mutations(numbers, given.seed, limit=given.limit):
        found.append(one)
        if lines:
            print(json.dumps(asdict(one)), file=lines, flush=True)
        if one.is_failure or given.only:
            print(f"{one.number} {one.kind}, {one.about}: {one.verdict}: {one.message}", flush=True)
    print(markdown(found))
    return int(any(one.is_failure for one in found))
