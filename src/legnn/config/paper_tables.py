"""The tables of the paper's experiments (section 5.2 and the appendix), as plain data."""

from __future__ import annotations

from typing import Any

HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "ogbn-arxiv": {
        "model.hidden": 540,
        "model.attention.heads": 3,
        "model.norm": "batch",
        "train.epochs": 2000,
        "train.patience": 200,
        "train.alpha": 0.5,
        "self_training.delta": 10.0,
        "self_training.pseudo_label_threshold": 0.7,
        "self_training.pseudo_label_weight": 0.5,
    },
    "ogbn-mag": {
        "model.hidden": 512,
        "model.attention.heads": 8,
        "model.norm": "none",
        "train.epochs": 500,
        "train.patience": 50,
        "train.alpha": 0.5,
        "self_training.delta": 5.0,
        "self_training.pseudo_label_threshold": 0.6,
        "self_training.pseudo_label_weight": 0.1,
    },
    "oag-venue": {
        "model.hidden": 256,
        "model.attention.heads": 8,
        "model.norm": "none",
        "train.epochs": 1000,
        "train.patience": 100,
        "train.alpha": 0.5,
        "self_training.delta": 30.0,
        "self_training.pseudo_label_threshold": 0.9,
        "self_training.pseudo_label_weight": 0.05,
    },
}
"""Settings of the paper for a data set, whatever the backbone and the use of labels. It does not say how many heads GAT
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
    "ogbn-arxiv": {"model.dropout": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), "train.lr": (0.001, 0.002, 0.005)},
    "ogbn-mag": {"model.dropout": (0.1, 0.2, 0.3, 0.4), "train.lr": (0.001, 0.01)},
    "oag-venue": {"model.dropout": (0.1, 0.2, 0.3, 0.4), "train.lr": (0.001, 0.01)},
}
"""The grid of the paper's search, by data set."""

SEARCHED_AS_TRAIN: dict[str, tuple[float, ...]] = {
    "self_training.pseudo_label_threshold": (0.5, 0.6, 0.7, 0.8, 0.9),
    "self_training.pseudo_label_weight": (0.05, 0.1, 0.3, 0.5, 1.0),
}
"""Further axes of the grid with AS-Train. `α` is 0.5 throughout, and `δ` follows the curve of the accuracy."""
