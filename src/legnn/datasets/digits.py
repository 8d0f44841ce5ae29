"""scikit-learn's handwritten digits as a graph of nearest neighbors, which need no download."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from legnn.data.raw_graph import RawGraph
from legnn.data.splits import draw_split
from legnn.lazy import lazy_module

sklearn_datasets = lazy_module("sklearn.datasets")

SIDE, LARGEST = 8, 16
"""Pixels of a side, and the largest value of one."""
CLASSES, NEIGHBORS, TRAIN_PER_CLASS, VAL_PER_CLASS = 10, 10, 10, 30
ROWS = 256
"""Rows whose distances are computed together: they stay in the processor's cache, which takes a third of the time."""


def read_digits(split: int | None) -> RawGraph:
    """Returns scikit-learn's 8x8 digits, with edges from the ten nearest; 10 training, 30 validation nodes a class."""
    pixels, digit = _pixels()
    y = torch.from_numpy(digit)
    neighbors = torch.from_numpy(nearest(pixels, NEIGHBORS))
    # from its neighbors to a node
    edge_index = torch.stack([neighbors.flatten(), torch.arange(len(y)).repeat_interleave(NEIGHBORS)])
    counts = (np.full(CLASSES, TRAIN_PER_CLASS), np.full(CLASSES, VAL_PER_CLASS))
    return RawGraph(
        name="digits",
        x=torch.from_numpy(pixels / LARGEST).float(),
        y=y,
        edge_index=edge_index,
        split=draw_split(y, *counts, seed=split or 0),
        class_names=list(range(CLASSES)),
        node_id=np.arange(len(y)),
        has_ids=False,
        feature_names=[f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE)],
    )


def _pixels() -> tuple[np.ndarray, np.ndarray]:
    """Returns the pixels `[n, 64]` and the digits `[n]`, read from scikit-learn's file."""
    package = find_spec("sklearn")
    folders = [] if package is None else package.submodule_search_locations or []
    for path in (Path(folder, "datasets", "data", "digits.csv.gz") for folder in folders):
        if path.is_file():
            rows = np.loadtxt(path, delimiter=",")
            return rows[:, :-1], rows[:, -1].astype(np.int64)
    # a release that keeps it elsewhere; importing scikit-learn takes longer than all the rest of reading
    digits = sklearn_datasets.load_digits()
    return digits.data, digits.target.astype(np.int64)


def nearest(x: np.ndarray, number: int) -> np.ndarray:
    """`[n, number]` the nearest rows of each row of `x` `[n, k]`, whole numbers: of equally near ones the first.

    scikit-learn's choice among equally near ones depends on the number of threads, and with it the graph.
    """
    rows, positions = len(x), np.arange(len(x))
    squares = (x**2).sum(1)
    beyond = 4 * squares.max() + 1
    neighbors = np.empty((rows, number), np.int64)
    # by PyTorch, whose threads are needed later, not by NumPy's own
    points = torch.from_numpy(x)
    for block in np.split(positions, range(ROWS, rows, ROWS)):
        # exact, since sums of whole numbers are
        keys = torch.mm(points[block], points.T).numpy()
        keys *= -2
        keys += squares[block, None]
        keys += squares
        keys[block - block[0], block] = beyond
        # one number of distance and row: those of a row differ, and the smallest are found without sorting all
        keys *= rows
        keys += positions
        neighbors[block] = np.sort(np.partition(keys, number, axis=1)[:, :number], axis=1) % rows
    return neighbors
