"""Arrays from what users have."""

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
