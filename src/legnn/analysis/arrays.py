"""Arrays from what users have, and the bands that values fall into."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from legnn.errors import InputError


def as_array(values: ArrayLike | Tensor) -> np.ndarray:
    """Returns an array of anything like one, or of a tensor on any device."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def check_rows(**arrays: np.ndarray) -> None:
    """Raises `InputError` unless all arrays have the same number of rows."""
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise InputError(f"there must be one row for each node in all arrays: {words}")


def band_of(values: np.ndarray, edges: ArrayLike) -> np.ndarray:
    """`k` where a value is in `(edges[k], edges[k + 1]]`; -1 below all bands, and the number of bands above them."""
    bounds = np.asarray(edges, dtype=np.float64)
    if bounds.ndim != 1 or len(bounds) < 2 or not (np.diff(bounds) > 0).all():
        raise InputError(f"edges of bands must be two or more ascending numbers, got {bounds.tolist()}")
    return np.searchsorted(bounds, np.asarray(values, dtype=np.float64), side="left") - 1
