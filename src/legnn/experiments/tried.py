"""Settings that `legnn reproduce --tried` compares on validation, for every variant that has none of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TRIED: Sequence[Mapping[str, Any]] = (
    # what the preset chooses
    {},
    # wide and shallow, with the features kept by a linear residual: for many labels and informative features
    {
        "hidden": 512,
        "layers": 2,
        "norm": "layer",
        "residual": "linear",
        "dropout": 0.3,
        "input_dropout": 0.0,
        "lr": 0.001,
        "weight_decay": 5e-4,
    },
    # small and strongly regularized: for few labels
    {
        "hidden": 64,
        "layers": 2,
        "norm": "none",
        "residual": "none",
        "dropout": 0.5,
        "input_dropout": 0.5,
        "lr": 0.003,
        "weight_decay": 0.05,
    },
    # deep enough for structure alone: for features that say little
    {
        "hidden": 256,
        "layers": 4,
        "norm": "layer",
        "residual": "linear",
        "dropout": 0.3,
        "input_dropout": 0.1,
        "lr": 0.003,
        "weight_decay": 0.0,
    },
)
"""In this order: of equally accurate ones the first is kept."""
