"""Reads a repository of predictions, which `benchmarks.repository` made.

What chooses gets `Validation`, which knows nothing of test nodes; `Cell` adds them for figures alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legnn.config.candidates import CANDIDATES
from legnn.config.facts import GraphFacts
from legnn.errors import InputError

LEVELS = 255
"""Probabilities are stored as multiples of its inverse."""
SMOOTH = "+smooth"
"""Ends the name of an entry that is a candidate with Correct & Smooth on top."""


class Key(NamedTuple):
    """What all candidates were trained on once."""

    data: str
    split: str
    seed: int


class Validation:
    """The runs on one graph, split and seed, as far as choices may depend on them.

    An entry is a candidate as it was trained, or with Correct & Smooth on top; its name then ends with `SMOOTH`.
    """

    def __init__(self, folder: Path, key: Key) -> None:
        self.key = key
        self._folder = folder
        self._arrays: dict[str, np.ndarray] = {}
        self.seconds: dict[str, float] = {}
        """By candidate, those that failed left out."""
        self.failed: dict[str, str] = {}
        """Why, by candidate."""
        self._has_smooth: set[str] = set()
        for path in sorted(folder.glob("*.json")):
            record = json.loads(path.read_text())
            if "error" in record:
                self.failed[path.stem] = record["error"]
            # a candidate that was given up may have runs still
            elif path.stem in CANDIDATES and path.with_suffix(".npz").is_file():
                self.seconds[path.stem] = record["seconds"]
                if "val_smooth" in record:
                    self._has_smooth.add(path.stem)

    @cached_property
    def facts(self) -> GraphFacts:
        with np.load(self._folder / "labels.npz") as file:
            content = json.loads(str(file["facts"]))
        return GraphFacts(**content)

    @cached_property
    def y(self) -> np.ndarray:
        """`[n]` the classes of validation nodes."""
        with np.load(self._folder / "labels.npz") as file:
            return file["val"].astype(np.int64)

    def entries(self, candidate: str) -> list[str]:
        """The names of the candidate's entries; none if it has no run here."""
        if candidate not in self.seconds:
            return []
        return [candidate, candidate + SMOOTH] if candidate in self._has_smooth else [candidate]

    def p(self, entry: str) -> np.ndarray:
        """`[n, C]` the probabilities of validation nodes."""
        if entry not in self._arrays:
            self._arrays[entry] = _read(self._folder, entry, "val")
        # kept as they are stored, a quarter of the memory
        return self._arrays[entry].astype(np.float32) / LEVELS

    @cached_property
    def accuracies(self) -> dict[str, float]:
        """By entry."""
        entries = [entry for candidate in self.seconds for entry in self.entries(candidate)]
        return {entry: float((self.p(entry).argmax(1) == self.y).mean()) for entry in entries}


class Cell:
    """The runs on one graph, split and seed, with the test nodes that figures are of."""

    def __init__(self, folder: Path, key: Key) -> None:
        self.key = key
        self._folder = folder
        self.validation = Validation(folder, key)

    @cached_property
    def y(self) -> np.ndarray:
        """`[n]` the classes of test nodes."""
        with np.load(self._folder / "labels.npz") as file:
            return file["test"].astype(np.int64)

    def p(self, entry: str) -> np.ndarray:
        """`[n, C]` the probabilities of test nodes."""
        return _read(self._folder, entry, "test").astype(np.float32) / LEVELS

    def mixture(self, weights: dict[str, float]) -> np.ndarray:
        """`[n, C]` the probabilities of test nodes, averaged over entries."""
        return np.asarray(sum(weight * self.p(entry) for entry, weight in weights.items()))

    def record(self, candidate: str) -> dict[str, Any]:
        """Accuracy on validation and test, seconds, epochs, of a run that did not fail."""
        content: dict[str, Any] = json.loads((self._folder / f"{candidate}.json").read_text())
        return content


class Repository:
    """All runs under a folder, `DATA/SPLIT-SEED/CANDIDATE`; `data` and `splits`, if given, are the only ones."""

    def __init__(self, root: str | Path, data: list[str] | None = None, splits: list[str] | None = None) -> None:
        self.cells: dict[Key, Cell] = {}
        for folder in sorted(Path(root).glob("*/*-*")):
            split, _, seed = folder.name.rpartition("-")
            key = Key(folder.parent.name, split, int(seed))
            is_wanted = (data is None or key.data in data) and (splits is None or key.split in splits)
            if is_wanted and (folder / "labels.npz").is_file():
                self.cells[key] = Cell(folder, key)
        if not self.cells:
            raise InputError(f"{root} has no runs as python -m benchmarks.repository --out makes them")

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells.values())

    @property
    def data(self) -> list[str]:
        return list(dict.fromkeys(key.data for key in self.cells))

    @property
    def validations(self) -> list[Validation]:
        return [cell.validation for cell in self]


def _read(folder: Path, entry: str, nodes: str) -> np.ndarray:
    candidate = entry.removesuffix(SMOOTH)
    with np.load(folder / f"{candidate}.npz") as file:
        return np.asarray(file[nodes if candidate == entry else f"{nodes}_smooth"])
