"""Settings that `legnn reproduce --trials` compares on validation, for every variant that has none of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CANDIDATES: Sequence[Mapping[str, Any]] = (
    # what the preset chooses
    {},
    # wide and shallow, with the features kept by a linear residual: for many labels and informative features
    {
        "model.hidden": 512,
        "model.layers": 2,
        "model.norm": "layer",
        "model.residual": "linear",
        "model.dropout": 0.3,
        "model.input_dropout": 0.0,
        "train.lr": 0.001,
        "train.weight_decay": 5e-4,
    },
    # small and strongly regularized: for few labels
    {
        "model.hidden": 64,
        "model.layers": 2,
        "model.norm": "none",
        "model.residual": "none",
        "model.dropout": 0.5,
        "model.input_dropout": 0.5,
        "train.lr": 0.003,
        "train.weight_decay": 0.05,
    },
    # deep enough for structure alone: for features that say little
    {
        "model.hidden": 256,
        "model.layers": 4,
        "model.norm": "layer",
        "model.residual": "linear",
        "model.dropout": 0.3,
        "model.input_dropout": 0.1,
        "train.lr": 0.003,
        "train.weight_decay": 0.0,
    },
)
"""In this order: of equally accurate ones the first is kept."""
