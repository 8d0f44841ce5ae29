"""Hours of training, predicting, scoring, killing and resuming in one process: what it holds must not grow.

    python -m benchmarks.campaign soak --minutes 120 --folder soak

A line for every minute goes to `soak.csv` as it comes, what it all came to at the end to `soak.json`.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import random
import re
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree

import numpy as np
from tests.named import arguments

from benchmarks.campaign import children
from benchmarks.campaign.outcomes import differences, outcome
from benchmarks.campaign.quick_runs import QUICK_RUNS, QuickRun, write_graphs

EPOCHS = 30
SAMPLE_SECONDS = 60.0
MIB = 2**20


@dataclass(frozen=True)
class Sample:
    """What the process holds at a moment."""

    minutes: float
    rounds: int
    resident_mib: float
    open_files: int
    threads: int
    temporary_files: int
    """In the system's folder for them and in those of the soak, where only what is kept should be."""


@dataclass
class Soak:
    """What a soak came to."""

    minutes: float
    counts: dict[str, int] = field(default_factory=dict)
    different: list[str] = field(default_factory=list)
    """Results that were not those of the first run with their settings, and errors."""
    samples: list[Sample] = field(default_factory=list)

    @property
    def mib_an_hour(self) -> float:
        """Growth of the memory after the first tenth: the slope of a line through the samples."""
        late = [one for one in self.samples if one.minutes >= self.minutes / 10]
        if len(late) < 2:
            return float("nan")
        return float(np.polyfit([one.minutes / 60 for one in late], [one.resident_mib for one in late], 1)[0])

    @property
    def is_good(self) -> bool:
        """Whether every result of equal settings was equal."""
        return not self.different

    def markdown(self) -> str:
        """Returns the table of a soak."""
        first, last = self.samples[0], self.samples[-1]
        rows = [
            ("minutes", f"{last.minutes:.0f}"),
            ("rounds", f"{last.rounds:,}"),
            *((name, f"{number:,}") for name, number in sorted(self.counts.items())),
            ("errors and results that differ", str(len(self.different))),
            ("memory, first and last minute", f"{first.resident_mib:.0f} and {last.resident_mib:.0f} MiB"),
            ("growth of memory after the first tenth", f"{self.mib_an_hour:+.2f} MiB an hour"),
            *(
                (f"{name.replace('_', ' ')}, least and most", f"{min(found)} and {max(found)}")
                for name in ("open_files", "threads", "temporary_files")
                for found in [[getattr(one, name) for one in self.samples]]
            ),
        ]
        return "\n".join(["| soak | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def soak(minutes: float, seed: int, folder: Path) -> Soak:
    """Goes round all cases until the time is over, and writes what it finds to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    graphs, work = write_graphs(folder / "graphs"), folder / "work"
    work.mkdir(exist_ok=True)
    tempfile.tempdir = str(folder / "temporary")
    Path(tempfile.tempdir).mkdir(exist_ok=True)
    chance, found = random.Random(seed), Soak(minutes)
    known: dict[str, dict[str, str]] = {}
    began, due = time.monotonic(), 0.0
    with (folder / "soak.csv").open("w", newline="", buffering=1) as file:
        lines = csv.DictWriter(file, list(Sample.__dataclass_fields__))
        lines.writeheader()
        for number, (name, case) in enumerate(itertools.cycle(QUICK_RUNS.items())):
            passed = time.monotonic() - began
            if passed >= due or passed > 60 * minutes:
                found.samples.append(_sample(passed / 60, number, folder))
                lines.writerow(asdict(found.samples[-1]))
                due = passed + SAMPLE_SECONDS
                _write(folder, found)
            if passed > 60 * minutes:
                break
            _round(name, case, graphs, work, known, chance, found)
    return found


def _write(folder: Path, found: Soak) -> None:
    (folder / "soak.json").write_text(json.dumps({**asdict(found), "mib_an_hour": found.mib_an_hour}, indent=1) + "\n")


def _round(
    name: str,
    case: QuickRun,
    graphs: Path,
    work: Path,
    known: dict[str, dict[str, str]],
    chance: random.Random,
    found: Soak,
) -> None:
    """Trains a case, whole, interrupted or killed, predicts and scores it, and compares all that with the first."""
    place = work / "run"
    # the first run with some settings is undisturbed
    way = chance.choice(("whole", "interrupted", "killed")) if name in known else "whole"
    count = f"trained, {way}"
    found.counts[count] = found.counts.get(count, 0) + 1
    try:
        {"whole": _whole, "interrupted": _interrupted, "killed": _killed}[way](case, graphs, place, chance)
        results = {**outcome(place), **_read(place)}
        different = differences(known.setdefault(name, results), results)
        found.different += [f"{name}, {way}: {', '.join(different)}"] if different else []
    except Exception as error:
        # what fails is counted, and the hours go on
        found.different.append(f"{name}, {way}: {type(error).__name__}: {error}")
    rmtree(place, ignore_errors=True)


def _whole(case: QuickRun, graphs: Path, place: Path, chance: random.Random) -> None:
    import legnn

    legnn.train(graphs / case.graph, **arguments(**case.options, epochs=EPOCHS, patience=EPOCHS), out=place)


def _interrupted(case: QuickRun, graphs: Path, place: Path, chance: random.Random) -> None:
    """Asks the run to stop after some epoch, and resumes it."""
    import legnn

    left = iter(range(chance.randrange(EPOCHS - 1)))
    try:
        legnn.train(
            graphs / case.graph,
            **arguments(**case.options, epochs=EPOCHS, patience=EPOCHS),
            out=place,
            should_stop=lambda: next(left, None) is None,
        )
    except legnn.Interrupted:
        legnn.resume(place)


def _killed(case: QuickRun, graphs: Path, place: Path, chance: random.Random) -> None:
    """Begins the run in another process, kills that, and resumes the run in this one."""
    import legnn

    output = place.parents[1] / "output.txt"
    words = [
        "train",
        *case.words(graphs),
        "--epochs",
        str(EPOCHS),
        "--set",
        f"train.patience={EPOCHS}",
        "--out",
        str(place),
    ]
    process = children.start(words, output)
    while process.is_alive() and not (place / "settings.yaml").is_file():
        time.sleep(0.01)
    process.join(chance.random())
    process.kill()
    process.join()
    process.close()
    legnn.resume(place)


def _read(place: Path) -> dict[str, str]:
    """Digests of what a finished run predicts and scores."""
    import legnn

    run = legnn.open(place)
    texts = {
        "predict": run.predict().to_csv(),
        "predict_proba": run.predict_proba().to_csv(),
        "evaluate": repr(run.evaluate()),
    }
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _sample(minutes: float, rounds: int, folder: Path) -> Sample:
    status = Path("/proc/self/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    threads = re.search(r"Threads:\s+(\d+)", status)
    assert resident is not None
    assert threads is not None
    temporary = [path for name in ("temporary", "work") for path in (folder / name).rglob("*") if path.is_file()]
    return Sample(
        minutes=round(minutes, 2),
        rounds=rounds,
        resident_mib=round(int(resident[1]) * 1024 / MIB, 1),
        open_files=len(list(Path("/proc/self/fd").iterdir())),
        threads=int(threads[1]),
        temporary_files=len(temporary),
    )
