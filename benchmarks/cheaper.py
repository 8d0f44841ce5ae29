"""A default that takes a fraction of the time and is as accurate, chosen on validation nodes alone.

    python -m benchmarks.cheaper --runs FILE [--seeds 5] [--processes 5] [--seconds 115]
    python -m benchmarks.cheaper --runs docs/data/cheaper.csv --table

The first trains what is missing in FILE, in which each run has a row for every patience, and prints the table of the
second. Nothing here reads a test label. `docs/data/cheaper.csv` is of an H200: no candidate was as accurate.

**Candidates.** `DEFAULT` with fewer channels, other learning rates and less patience: `WIDTHS`, `RATES`, `PATIENCES`.

**What is compared.** All graphs with one node type that the portfolio was learned from, on both splits, each run paired
with one of `DEFAULT` on the same graph, split and seed. The accuracy of validation nodes in the epoch that they chose
is too high, and the more so the more epochs they chose from, so it would speak for patience. Validation nodes are
therefore halved at random, alike for all candidates: the epoch is chosen on one half, by the early stopping of
training, and its accuracy is that of the other; both halves take both parts. Weights depend on patience only by where
training ends, so one run records all epochs, and says what it would have come to with each patience.

**Cost.** Multiplications of an epoch times epochs, with the epochs of early stopping on all validation nodes, as a part
of those of `DEFAULT`: the geometric mean over graphs, splits and seeds.

**Rule.** Differences are averaged over seeds and splits, then over graphs. A candidate is as accurate if its mean is
not below zero by more than its standard error over graphs, nor by more than `MOST_LOSS`, which bounds what noise
excuses. Of these, the one of least cost is chosen; without any, `DEFAULT` stays.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.cheaper_report import DEFAULT, OLD, PATIENCES, SPLITS, Row, Setting, add_rows, print_table, read_rows
from benchmarks.regimes import load_split
from benchmarks.repository import DEGENERATE
from legnn.config import ResolvedSettings, Settings
from legnn.config.candidates import CANDIDATES
from legnn.data import GraphData
from legnn.datasets import CATALOG
from legnn.runs.build import new_trainer
from legnn.runs.data_card import DataCard
from legnn.runs.device import select_device
from legnn.runs.resources import choose_precision
from legnn.runs.task_server import Signals
from legnn.runs.worker_process import Failure
from legnn.runs.workers import carry_out
from legnn.training import FullBatch
from legnn.training.early_stopping import EarlyStopping
from legnn.training.ranks import SINGLE_PROCESS

WIDTHS, RATES = (256, 128), (0.001, 0.002, 0.003)
RECORDED_PATIENCE = 80
"""Of a recorded run, by all validation nodes: half of them may stop later."""
DATA = (
    "cora", "citeseer", "chameleon-filtered", "squirrel-filtered", "actor", "amazon-photo", "minesweeper",
    "amazon-computers", "pubmed", "coauthor-cs", "debian",
)  # fmt: skip
SEEDS = {"debian": 1}
"""Of a graph that takes longer than all others."""


class Recording(NamedTuple):
    """A run to record."""

    data: str
    split: str
    seed: int
    hidden: int
    lr: float


class Recorder:
    """Which validation nodes were right, and their cross-entropy, in every epoch; in place of `FullBatch.validate`."""

    def __init__(self, batching: FullBatch, epochs: int) -> None:
        self._validate, self._y, self._row = batching.validate, batching.task.val_y, 0
        shape, device = (epochs, batching.task.val.numel()), batching.device
        self.right = torch.zeros(shape, dtype=torch.bool, device=device)
        self.loss = torch.zeros(shape, dtype=torch.float, device=device)

    def validate(self, shown: Tensor) -> Tensor:
        """Returns the logits of the validation nodes, and records them."""
        logits = self._validate(shown)
        self.right[self._row] = logits.argmax(1) == self._y
        self.loss[self._row] = torch.nn.functional.cross_entropy(logits.float(), self._y, reduction="none")
        self._row += 1
        return logits


@cache
def graph_of(data: str, split: str, seed: int) -> GraphData:
    """The graph with a split; the process keeps it, as runs on the same one share what they compute of it."""
    return load_split(data, split, seed, Settings(preset="simple"))[0]


def train(task: Recording, signals: Signals) -> list[Row]:
    """Trains a run in a worker process and returns what it comes to with each patience."""
    splits = getattr(CATALOG.get(task.data), "num_splits", 1) if task.split == "public" else task.seed + 1
    graph = graph_of(task.data, task.split, task.seed % splits)
    given = {
        **CANDIDATES[DEFAULT].values,
        "hidden": task.hidden,
        "lr": task.lr,
        "patience": RECORDED_PATIENCE,
        "seed": task.seed,
    }
    settings = Settings(preset="simple", given={**given, "batch": "full"}).resolve(graph.facts())
    settings, _ = choose_precision(settings.override(source="memory"), graph, select_device("auto"))
    return record(graph, settings, task)


def record(graph: GraphData, settings: ResolvedSettings, task: Recording) -> list[Row]:
    """Trains a run and returns what it comes to with each patience."""
    device = select_device("auto")
    with new_trainer(settings, graph, DataCard.of(graph, fingerprint=""), device, SINGLE_PROCESS) as trainer:
        batching = trainer.batching
        assert isinstance(batching, FullBatch)
        recorder = Recorder(batching, trainer.epochs)
        batching.validate = recorder.validate  # type: ignore[method-assign]
        trainer.fit()
    right, loss = (values[: trainer.epoch].cpu().numpy() for values in (recorder.right, recorder.loss))
    is_cut, rows = trainer.epoch < trainer.epochs, []
    for patience in PATIENCES:
        held_out, unfinished = hold_out(right, loss, patience, task.seed)
        epochs = stop_early(right, loss, patience)[1]
        setting = Setting(task.hidden, task.lr, patience)
        counts = epochs, unfinished if is_cut else 0, multiplications(graph, settings)
        rows.append(Row(task.data, task.split, task.seed, setting, round(held_out, 5), *counts))
    return rows


def hold_out(right: np.ndarray, loss: np.ndarray, patience: int, seed: int) -> tuple[float, int]:
    """Returns the accuracy of each half of the nodes in the epoch that the other half chose, and how many did not stop.

    Args:
        right: `[epochs, n]` whether a validation node was predicted rightly.
        loss: `[epochs, n]` its cross-entropy.
        patience: epochs without a better one before training stops.
        seed: of the halves.
    """
    order = np.random.default_rng(seed).permutation(right.shape[1])
    halves = order[::2], order[1::2]
    found, unfinished = [], 0
    for choosing, other in (halves, halves[::-1]):
        best, _, is_over = stop_early(right[:, choosing], loss[:, choosing], patience)
        found.append(float(right[best - 1, other].mean()))
        unfinished += not is_over
    return fmean(found), unfinished


def stop_early(right: np.ndarray, loss: np.ndarray, patience: int) -> tuple[int, int, bool]:
    """Returns the best epoch, the last one, and whether early stopping ended it there."""
    stopper = EarlyStopping(patience)
    for epoch, (score, mean) in enumerate(zip(right.mean(1).tolist(), loss.mean(1).tolist(), strict=True), start=1):
        stopper.improves(epoch, score, mean)
        if stopper.is_over(epoch):
            return stopper.best_epoch, epoch, True
    return stopper.best_epoch, len(right), False


def multiplications(graph: GraphData, settings: ResolvedSettings) -> int:
    """Those of an epoch: forward, twice as many backward, and validation."""
    model = settings.model
    # each layer has a product for its neighbors and one for its residual, and sums over edges
    layers = model.layers * 2 * (graph.num_nodes * model.hidden + graph.num_edges)
    return 4 * model.hidden * (int(torch.count_nonzero(graph.x)) + layers)


def recordings(seeds: int) -> Iterator[Recording]:
    """All runs, seed by seed, so that those that were trained when time is over are comparable."""
    settings = [(OLD.hidden, OLD.lr), *((hidden, lr) for hidden in WIDTHS for lr in RATES)]
    for seed in range(seeds):
        for data in DATA:
            for split in SPLITS if seed < SEEDS.get(data, seeds) else ():
                for setting in settings if (data, split, seed) not in DEGENERATE else ():
                    yield Recording(data, split, seed, *setting)


def train_all(
    tasks: Sequence[Recording], processes: int, seconds: float, note: Callable[[Iterable[Row]], None]
) -> None:
    """Trains in several processes until all is done or `seconds` are over, and passes on what runs came to."""
    waiting, begun = deque(tasks), time.monotonic()

    def on_outcome(task: Recording, found: list[Row] | Failure) -> None:
        if isinstance(found, Failure):
            print(f"{task}: {found.why}", flush=True)
        else:
            note(found)

    def next_task() -> Recording | None:
        return waiting.popleft() if waiting and time.monotonic() - begun < seconds else None

    carry_out(train, next_task, processes, on_outcome=on_outcome)
    print(f"{len(tasks) - len(waiting)} of {len(tasks)} runs in {time.monotonic() - begun:.0f} s\n", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="file of the runs")
    parser.add_argument("--table", action="store_true", help="trains nothing")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no run after so long")
    options = parser.parse_args(arguments)
    if not options.table:
        done = {(*row[:3], *row.setting[:2]) for row in read_rows(options.runs)}
        missing = [task for task in recordings(options.seeds) if task not in done]
        train_all(missing, options.processes, options.seconds, partial(add_rows, options.runs))
    print_table(read_rows(options.runs))


if __name__ == "__main__":
    # worker processes find functions by the name of their module
    from benchmarks.cheaper import main as importable

    importable()
