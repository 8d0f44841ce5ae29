"""Graphs as the accuracy benchmarks split them: the data set's own split, many labels, or few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from legnn.config import Settings
from legnn.data import GraphData
from legnn.data.splits import TEST, TRAIN, VAL
from legnn.datasets import CATALOG
from legnn.runs.graphs import load_new

REGIMES = ("public", "many", "few")

DATA: dict[str, dict[str, Any]] = {
    **{
        name: {}
        for name in (
            "cora", "citeseer", "pubmed", "amazon-photo", "amazon-computers", "coauthor-cs", "actor",
            "chameleon-filtered", "squirrel-filtered", "minesweeper", "tolokers", "dblp", "debian", "debian-hetero",
        )
    },
    # the published features of ogbn-arxiv could not be had: features of the graph alone
    "ogbn-arxiv": {"data.features": "spectral"},
}  # fmt: skip
"""The graphs of the benchmark, and the settings of the data they are loaded with."""

FEW_A_CLASS, FEW_VAL = 20, 500
MANY_TRAIN, MANY_VAL = 0.6, 0.2
MOST_TEST = 20_000
"""Of more test nodes, so many are drawn: the predictions of all of them would fill disks and change no figure."""


def load_split(data: str, regime: str, seed: int, settings: Settings) -> tuple[GraphData, Settings]:
    """Returns a graph with the split of a regime and seed, and the settings that say where it is from.

    Settings of the data in `settings` win over those of `DATA`.
    """
    values = {**DATA.get(data, {}), **settings.values}
    if regime == "public" and data in CATALOG and CATALOG[data].num_splits > 1:
        values["data.split"] = seed % CATALOG[data].num_splits
    settings = Settings(preset=settings.preset, values=values)
    graph, settings = load_new(settings, data)
    return with_regime(graph, regime, seed), settings


def with_regime(graph: GraphData, regime: str, seed: int) -> GraphData:
    """Returns the graph with another split: 60/20/20 at random, or 20 a class with 500 for validation; or its own.

    Of more than `MOST_TEST` test nodes, so many are kept, drawn at random.
    """
    rng = np.random.default_rng(seed)
    train, val, test = (mask.numpy() for mask in (graph.train_mask, graph.val_mask, graph.test_mask))
    if regime != "public":
        y = graph.y.numpy()
        order = rng.permutation(np.flatnonzero(y >= 0))
        train, val, test = _few(order, y) if regime == "few" else _many(order, y)
    if test.sum() > MOST_TEST:
        drawn = rng.choice(np.flatnonzero(test), MOST_TEST, replace=False)
        test = np.zeros_like(test)
        test[drawn] = True
    split = torch.from_numpy((TRAIN * train + VAL * val + TEST * test).astype(np.int8))
    # the stored fingerprint of a prepared folder is of its own split
    return replace(graph, split=split, provenance=replace(graph.provenance, fingerprint=""))


def _many(order: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, second = round(MANY_TRAIN * len(order)), round((MANY_TRAIN + MANY_VAL) * len(order))
    return _mask(order[:first], y), _mask(order[first:second], y), _mask(order[second:], y)


def _few(order: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a class with fewer than twice 20 nodes, half."""
    chosen = []
    for c in np.unique(y[order]):
        of_class = order[y[order] == c]
        chosen.append(of_class[: max(1, min(FEW_A_CLASS, len(of_class) // 2))])
    train = _mask(np.concatenate(chosen), y)
    others = order[~train[order]]
    number = min(FEW_VAL, len(others) // 2)
    return train, _mask(others[:number], y), _mask(others[number:], y)


def _mask(nodes: np.ndarray, y: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(y), dtype=bool)
    mask[nodes] = True
    return mask
