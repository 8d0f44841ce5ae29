"""Estimates the time of a candidate, so that a short budget is not spent on the first few of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

EPOCHS = 150
"""Epochs until early stopping ends a usual candidate."""
PASSES = 4
"""Forward passes that an epoch is worth: one, about two of the gradient, and one of validation."""
SHARE = 10
"""So many candidates should fit into the budget of a process."""
PATIENCE = 4.0
"""Places that a candidate is moved back for each time that it takes twice its share."""


class Speed(NamedTuple):
    """Speed of one process."""

    products: float
    """Multiplications and additions of dense products a second."""
    edges: float
    """Channels that are added along edges a second."""


CPU, GPU = Speed(8e10, 2.6e9), Speed(2e13, 2e11)
"""Measured on one core (GCN of 512 channels on Cora and squirrel-filtered), guessed for a GPU that several share."""


class Size(NamedTuple):
    """Sizes that the time of an epoch depends on."""

    nodes: int
    edges: int
    classes: int


def training_seconds(values: Mapping[str, Any], size: Size, speed: Speed) -> float:
    """An estimate, good to a factor of two, of the seconds that a candidate with these settings takes."""
    if values.get("model.architecture") == "label_propagation":
        return size.edges * size.classes * values.get("model.label_propagation.steps", 50) / speed.edges
    hidden, layers, backbone = (
        values.get("model.hidden", 256),
        values.get("model.layers", 2),
        values.get("model.backbone", "gcn"),
    )
    matrices = 2 if values.get("model.residual") in ("linear", "identity") else 1
    along_edges = size.edges * hidden * layers
    if backbone in ("appnp", "dagnn"):
        along_edges = size.edges * size.classes * values.get("model.appnp.hops", 10)
    if backbone in ("gat", "gatv2", "transformer", "hgt") or values.get("model.architecture") == "unimp":
        # scores and their gradients, besides the sums
        along_edges *= 3
    products = 2 * size.nodes * hidden * hidden * layers * matrices
    epoch = PASSES * (products / speed.products + along_edges / speed.edges)
    return epoch * min(values.get("train.epochs", EPOCHS), EPOCHS)


def order_by_cost(
    candidates: Mapping[str, Mapping[str, Any]], size: Size, speed: Speed, seconds: float
) -> Sequence[str]:
    """Returns the names in the order in which they are trained with `seconds` of all processes together.

    With time enough it is the order of `candidates`. Otherwise candidates that would take more than `1 / SHARE` of it
    wait for some of those behind them.
    """

    def key(position: int, name: str) -> float:
        needed = training_seconds(candidates[name], size, speed)
        return position + PATIENCE * max(math.log2(max(needed, 1e-9) * SHARE / max(seconds, 1e-9)), 0.0)

    positions = {name: key(position, name) for position, name in enumerate(candidates)}
    return sorted(candidates, key=positions.__getitem__)
