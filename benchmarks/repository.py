"""A repository of predictions: every candidate once on every graph, split and seed.

    python -m benchmarks.repository --out FOLDER --data cora citeseer --split public few --seeds 3 --jobs 14

Trains what is missing and keeps, for every run, the probabilities of validation and test nodes, with and without
Correct & Smooth; the same command goes on after an interruption. Portfolio, defaults, ensembles and comparisons are
computed from it without training (`benchmarks.portfolio`, `benchmarks.leave_one_out`).

| file | what it holds |
|---|---|
| `DATA/SPLIT-SEED/labels.npz` | the classes `val` and `test`, and `facts`, of the graph |
| `DATA/SPLIT-SEED/CANDIDATE.npz` | probabilities `val`, `test`, `val_smooth`, `test_smooth`, times 255 and rounded |
| `DATA/SPLIT-SEED/CANDIDATE.json` | accuracy on validation and test, seconds, epochs, parameters, or why it failed |
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pool import map_in_processes
from benchmarks.predictions import LEVELS
from benchmarks.regimes import DATA, REGIMES, load_split
from legnn.cli.options import parse_settings
from legnn.cli.processes import stop_on_signal
from legnn.config import Settings
from legnn.config.candidates import CANDIDATES
from legnn.errors import Interrupted, LegnnError
from legnn.files import atomic_write, write_text
from legnn.runs.session import Callbacks, start_run
from legnn.sweep.held_out import accuracy, held_out_probabilities, labels_of

TYPED = ("dblp", "debian-hetero")
DEGENERATE = [("minesweeper", "few", 0)]
"""The mines of minesweeper were drawn by the generator that draws splits, with the seed 0: there would be nothing but
mines in validation."""
DEFAULT = "default"
"""In the place of a candidate: what `legnn train` chooses by itself."""


class Job(NamedTuple):
    """One run of the repository."""

    root: Path
    data: str
    split: str
    seed: int
    candidate: str
    overrides: tuple[tuple[str, Any], ...] = ()
    """Settings that win over those of the candidate, such as fewer epochs on large graphs."""

    @property
    def folder(self) -> Path:
        return self.root / Path(self.data).name / f"{self.split}-{self.seed}"

    @property
    def is_done(self) -> bool:
        return (self.folder / f"{self.candidate}.json").is_file()


def train_job(job: Job) -> str | None:
    """Trains a run and writes its files; returns why it could not, if it could not."""
    begin = time.perf_counter()
    try:
        content = _train(job, begin)
    except Interrupted:
        return "interrupted"
    except LegnnError as error:
        content = {"error": str(error), "seconds": time.perf_counter() - begin}
    # last: a run that has it is done
    write_text(job.folder / f"{job.candidate}.json", json.dumps(content))
    return content.get("error")


def _train(job: Job, begin: float) -> dict[str, Any]:
    is_default = job.candidate == DEFAULT
    values = {} if is_default else CANDIDATES[job.candidate].values
    wanted = Settings(
        preset="recommended" if is_default else "simple",
        values={**values, **dict(job.overrides), "train.seed": job.seed},
    )
    graph, settings = load_split(job.data, job.split, job.seed, wanted)
    facts = graph.facts()
    resolved = settings.resolve(facts).override({"data.source": "memory"})
    run = start_run(graph, resolved, None, Callbacks(lambda log: None, lambda: False))
    probabilities = held_out_probabilities(run, graph, device=resolved.train.device)
    labels = {name: labels_of(graph, name) for name in ("val", "test")}
    if not (job.folder / "labels.npz").is_file():
        with atomic_write(job.folder / "labels.npz") as file:
            np.savez_compressed(file, facts=json.dumps(asdict(facts)), classes=graph.num_classes, **labels)
    with atomic_write(job.folder / f"{job.candidate}.npz") as file:
        np.savez_compressed(file, **{name: np.rint(p * LEVELS).astype(np.uint8) for name, p in probabilities.items()})
    scores = {name: accuracy(p, labels[name.split("_")[0]]) for name, p in probabilities.items()}
    result = run.result
    return {
        **scores, "seconds": time.perf_counter() - begin, "epochs": result.epochs, "best_epoch": result.best_epoch,
        "parameters": result.parameters, "device": result.device, "training_seconds": result.seconds,
    }  # fmt: skip


def jobs_of(options: argparse.Namespace) -> Iterator[Job]:
    """All runs that were asked for, seed by seed."""
    names = options.candidates or list(CANDIDATES)
    unknown = sorted(set(names) - set(CANDIDATES))
    if unknown:
        raise SystemExit(f"there is no candidate {unknown[0]!r}; choose from {', '.join(CANDIDATES)}")
    overrides = tuple(parse_settings(options.set).items())
    if options.list is not None:
        for line in options.list.read_text().splitlines():
            data, split, seed, name = line.split()
            yield Job(Path(options.out), data, split, int(seed), name, overrides)
        return
    for seed in options.seed_list or range(options.seeds):
        for data in options.data:
            for split in options.split:
                for name in () if (data, split, seed) in DEGENERATE else names:
                    if (not CANDIDATES[name].is_typed or data in TYPED) and name not in options.without:
                        yield Job(Path(options.out), data, split, seed, name, overrides)


def train_all(jobs: Sequence[Job], processes: int, seconds: float) -> None:
    """Trains what is missing, `processes` at a time, and stops after `seconds` or on a signal."""
    missing = [job for job in jobs if not job.is_done]
    began, ended, failed = time.monotonic(), 0, 0
    with stop_on_signal() as is_asked:
        is_over = lambda: is_asked() or time.monotonic() - began > seconds  # noqa: E731
        for job, error in map_in_processes(train_job, missing, processes, is_over):
            ended += 1
            if error is not None:
                failed += 1
                print(f"{job.data} {job.split}-{job.seed} {job.candidate}: {str(error)[:160]}", flush=True)
            if ended % 100 == 0 or ended == len(missing):
                print(f"{ended} of {len(missing)} after {time.monotonic() - began:.0f} s, {failed} failed", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder of the repository")
    parser.add_argument("--data", nargs="+", default=list(DATA), help="named data sets")
    parser.add_argument("--split", nargs="+", choices=REGIMES, default=["public", "few"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed-list", type=int, nargs="+", help="these seeds alone")
    parser.add_argument("--candidates", nargs="+", help="some of the candidates, by name")
    parser.add_argument("--list", type=Path, help="file of lines DATA SPLIT SEED CANDIDATE, these runs alone")
    parser.add_argument("--without", nargs="+", default=[], help="candidates to leave out")
    parser.add_argument("--set", nargs="+", default=[], help="settings such as train.epochs=200, for all of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args(arguments)
    train_all(list(jobs_of(options)), options.jobs, options.seconds)


if __name__ == "__main__":
    # worker processes find functions by the name of their module
    from benchmarks.repository import main as importable

    importable()
