"""Runs that take a second or two: small graphs as folders of tables, and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.graphs import small_data, table_folder
from tests.named import named
from tests.typed_graphs import small_hetero, typed_folder

# a checkpoint after every epoch: a kill may come in the middle of any of its writes
QUICK: dict[str, Any] = {"hidden": 8, "layers": 2, "device": "cpu", "checkpoint_seconds": 0}
MINI: dict[str, Any] = {"batch": 16, "fanout": "3"}
AS_TRAIN: dict[str, Any] = {"as_train": True, "pseudo_label_threshold": 0.4}


class QuickRun(NamedTuple):
    """A graph and the settings of a run on it."""

    graph: str
    options: dict[str, Any]

    def words(self, graphs: Path) -> list[str]:
        """Returns what follows `legnn train`."""
        return [str(graphs / self.graph), *words_of(self.options)]


FULL = {"backbone": "gcn", **QUICK}
QUICK_RUNS = {
    "full": QuickRun("plain", FULL),
    "full, AS-Train": QuickRun("plain", {**FULL, "backbone": "gat", "heads": 2, **AS_TRAIN}),
    "mini": QuickRun("plain", {**FULL, **MINI}),
    "mini, AS-Train": QuickRun("plain", {**FULL, "backbone": "sage", **MINI, **AS_TRAIN}),
    "typed": QuickRun("typed", FULL),
    "typed, AS-Train": QuickRun("typed", {**FULL, "backbone": "rgcn", **AS_TRAIN}),
    "typed, mini": QuickRun("typed", {**FULL, "backbone": "gat", "heads": 2, **MINI}),
}

SEARCH = [
    "--only", "label-propagation,legnn-gcn-wide", "--budget", "40s", "--jobs", "1", "--epochs", "60",
    "--set", "train.checkpoint_seconds=0", "--device", "cpu",
]  # fmt: skip
"""Options of `legnn auto`: two candidates, and then changes of them."""


def words_of(options: dict[str, Any]) -> list[str]:
    """Returns settings as options of the command line."""
    words = []
    for name, value in named(**options).items():
        words += ["--set", f"{name}={value}"]
    return words


def write_graphs(folder: Path, nodes: int = 120) -> Path:
    """Writes the graphs of all runs under a folder, and returns it."""
    table_folder(folder / "plain", small_data(nodes))
    # reading and writing take long enough to be killed
    table_folder(folder / "large", small_data(4000, channels=64))
    typed_folder(folder / "typed", small_hetero())
    return folder
