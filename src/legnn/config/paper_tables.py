"""The tables of the paper's experiments (section 5.2 and the appendix), as plain data."""

from __future__ import annotations

from typing import Any

HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "ogbn-arxiv": {
        "hidden": 540, "heads": 3, "norm": "batch", "epochs": 2000, "patience": 200,
        "alpha": 0.5, "delta": 10.0, "threshold": 0.7, "weight": 0.5,
    },
    "ogbn-mag": {
        "hidden": 512, "heads": 8, "norm": "none", "epochs": 500, "patience": 50,
        "alpha": 0.5, "delta": 5.0, "threshold": 0.6, "weight": 0.1,
    },
    "oag-venue": {
        "hidden": 256, "heads": 8, "norm": "none", "epochs": 1000, "patience": 100,
        "alpha": 0.5, "delta": 30.0, "threshold": 0.9, "weight": 0.05,
    },
}  # fmt: skip
"""What the paper sets for a data set, whatever the backbone and the use of labels. It does not say how many heads GAT
has: they are those of its code, and for oag-venue those of ogbn-mag."""

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

SEARCHED: dict[str, dict[str, tuple[float, ...]]] = {
    "ogbn-arxiv": {"dropout": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), "lr": (0.001, 0.002, 0.005)},
    "ogbn-mag": {"dropout": (0.1, 0.2, 0.3, 0.4), "lr": (0.001, 0.01)},
    "oag-venue": {"dropout": (0.1, 0.2, 0.3, 0.4), "lr": (0.001, 0.01)},
}
"""The grid of the paper's search, by data set."""

SEARCHED_AS_TRAIN: dict[str, tuple[float, ...]] = {
    "threshold": (0.5, 0.6, 0.7, 0.8, 0.9),
    "weight": (0.05, 0.1, 0.3, 0.5, 1.0),
}
"""What the grid has besides with AS-Train. `α` is 0.5 throughout, and `δ` follows the curve of the accuracy."""
