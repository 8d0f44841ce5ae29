"""The tables of the paper's experiments (section 5.2 and the appendix), as plain data."""

from __future__ import annotations

from typing import NamedTuple


class Hyperparameters(NamedTuple):
    """What the paper sets for a data set, whatever the backbone and the use of labels."""

    hidden: int
    heads: int
    """Of GAT. Not in the paper: those of its code, and for oag-venue those of ogbn-mag."""
    norm: str
    epochs: int
    patience: int
    alpha: float
    delta: float
    threshold: float
    weight: float


HYPERPARAMETERS: dict[str, Hyperparameters] = {
    "ogbn-arxiv": Hyperparameters(540, 3, "batch", 2000, 200, 0.5, 10.0, 0.7, 0.5),
    "ogbn-mag": Hyperparameters(512, 8, "none", 500, 50, 0.5, 5.0, 0.6, 0.1),
    "oag-venue": Hyperparameters(256, 8, "none", 1000, 100, 0.5, 30.0, 0.9, 0.05),
}

LAYERS = 3
FANOUT = (15, 10, 5)
"""Neighbors drawn in each layer, from the input side."""

DROPOUT_AND_LR: dict[str, dict[str, dict[str, tuple[float, float]]]] = {
    "ogbn-arxiv": {
        "gcn": {"vanilla": (0.6, 0.001), "concat": (0.4, 0.001), "addition": (0.6, 0.001), "enhanced": (0.6, 0.002)},
        "sage": {"vanilla": (0.6, 0.001), "concat": (0.5, 0.001), "addition": (0.6, 0.002), "enhanced": (0.5, 0.002)},
        "gat": {"vanilla": (0.6, 0.001), "concat": (0.6, 0.001), "addition": (0.6, 0.002), "enhanced": (0.6, 0.002)},
    },
    "ogbn-mag": {
        "gcn": {"vanilla": (0.3, 0.001), "concat": (0.3, 0.001), "addition": (0.3, 0.001), "enhanced": (0.3, 0.001)},
        "sage": {"vanilla": (0.3, 0.001), "concat": (0.4, 0.001), "addition": (0.4, 0.001), "enhanced": (0.3, 0.001)},
        "gat": {"vanilla": (0.4, 0.001), "concat": (0.4, 0.001), "addition": (0.3, 0.001), "enhanced": (0.3, 0.001)},
    },
    "oag-venue": {
        "gcn": {"vanilla": (0.2, 0.001), "concat": (0.2, 0.001), "addition": (0.2, 0.001), "enhanced": (0.4, 0.001)},
        "sage": {"vanilla": (0.3, 0.001), "concat": (0.2, 0.001), "addition": (0.3, 0.001), "enhanced": (0.4, 0.001)},
        "gat": {"vanilla": (0.2, 0.001), "concat": (0.2, 0.001), "addition": (0.3, 0.001), "enhanced": (0.4, 0.001)},
    },
}
"""`DROPOUT_AND_LR[data set][backbone][labels]`."""
