"""Trains a design, trains it again and kills that process, resumes it, each in a process of its own.

`python -m tests.baselines.killed FOLDER NAME…` imports once and forks for every run: a process a run that imports
everything anew would take ten times as long.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from tests.graphs import small_data
from tests.named import arguments
from tests.typed_graphs import small_hetero

import legnn
from legnn.config.designs import DESIGNS

QUICK = {
    "hidden": 8, "heads": 2, "layers": 2, "hops": 2, "trees": 3, "epochs": 5, "checkpoint_seconds": 0,
    "features": "given",
}  # fmt: skip
KILLED_IN = 3


def options_of(name: str) -> dict:
    """The settings of a quick run of a design; its name may be followed by `:batch`."""
    batch = {"batch": 8, "fanout": "3", "self_loops": True} if name.endswith(":batch") else {}
    return arguments(preset=name.partition(":")[0], **{**QUICK, **batch})


def data_of(name: str):
    """A graph for it."""
    return small_hetero() if DESIGNS[name.partition(":")[0]].is_typed else small_data(60)


def kill_myself(log) -> None:
    """As `kill -9` would, after an epoch."""
    if log.epoch == min(KILLED_IN, log.epochs):
        os.kill(os.getpid(), signal.SIGKILL)


def in_a_process(work: Callable[[], object]) -> int:
    """Runs `work` in a forked process, and returns its exit status as `waitpid` gives it."""
    if not (child := os.fork()):
        torch.set_num_threads(1)
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main(root: Path, names: list[str]) -> None:
    """Prints a line for each name: its three exit codes, negative for a signal."""
    for name in names:
        data, options, folder = data_of(name), options_of(name), root / name.replace(":", "-")
        statuses = [
            in_a_process(partial(legnn.train, data, out=folder / "whole", **options)),
            in_a_process(partial(legnn.train, data, out=folder / "cut", on_epoch=kill_myself, **options)),
            in_a_process(partial(legnn.resume, folder / "cut", data)),
        ]
        print(name, *(os.waitstatus_to_exitcode(status) for status in statuses), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
