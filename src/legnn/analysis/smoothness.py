"""How close the nodes of a class are to each other: the paper's label difference and graph difference."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.analysis.arrays import as_array, check_rows


def label_differences(z: ArrayLike | Tensor, y: ArrayLike | Tensor, num_classes: int) -> np.ndarray:
    """`LD_c = 1/|V_c| Σ_{v ∈ V_c} ‖z_v - z_c‖₂` with `z_c = 1/|V_c| Σ_{v ∈ V_c} z_v`, `[C]`.

    NaN for a class without nodes. Nodes of unknown class, -1, are left out.

    Shapes: `z` `[n, D]`, `y` `[n]`.
    """
    rows, classes = as_array(z), as_array(y)
    check_rows(z=rows, y=classes)
    distances = np.full(num_classes, np.nan)
    # sorted once: a mask for each of thousands of classes would read all nodes as often
    order = np.argsort(classes, kind="stable")
    ends = np.searchsorted(classes[order], np.arange(num_classes + 1))
    for c, (start, end) in enumerate(pairwise(ends.tolist())):
        if start < end:
            distances[c] = _mean_distance(rows[order[start:end]])
    return distances


def graph_difference(z: ArrayLike | Tensor, y: ArrayLike | Tensor, num_classes: int) -> float:
    """`GD = 1/C Σ_c LD_c`, over the classes that have nodes; NaN if none has."""
    differences = label_differences(z, y, num_classes)
    present = ~np.isnan(differences)
    return float(differences[present].mean()) if present.any() else float("nan")


def relative_graph_difference(z: ArrayLike | Tensor, y: ArrayLike | Tensor, num_classes: int) -> float:
    """`GD` divided by the mean distance of all nodes of known class to their mean; NaN if they are all equal.

    `GD` alone halves when a model halves all its representations, which changes no class. This ratio stays: near 1
    where classes say nothing of the representations, near 0 where those of a class are all alike.
    """
    rows, classes = as_array(z), as_array(y)
    difference = graph_difference(rows, classes, num_classes)
    known = rows[classes >= 0]
    spread = _mean_distance(known) if len(known) else 0.0
    return difference / spread if spread > 0 else float("nan")


def _mean_distance(rows: np.ndarray) -> float:
    centered = rows.astype(np.float64)
    centered -= centered.mean(0)
    return float(np.sqrt(np.einsum("nd,nd->n", centered, centered)).mean())
