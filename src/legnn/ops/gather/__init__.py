"""Rows of a matrix that may lie in the host's memory while the device that reads them is a GPU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from legnn.ops.backend import backend


class FeatureCache(NamedTuple):
    """The rows of a matrix in the host's memory that are read most often, in the memory of the GPU."""

    values: Tensor
    """`[H, …]`."""
    position: Tensor
    """`[M]` int32: where a row is in `values`, -1 if it is not."""

    @classmethod
    def of(cls, values: Tensor, count: Tensor, size: int) -> FeatureCache:
        """Copies the `size` rows of `values` `[M, …]` with the largest `count` `[M]` to the device of `count`."""
        rows = count.topk(size, sorted=False).indices.sort().values
        position = torch.full((values.size(0),), -1, dtype=torch.int32, device=count.device)
        position[rows] = torch.arange(size, dtype=torch.int32, device=count.device)
        return cls(gather_rows(values, rows, count.device), position)


def gather_rows(values: Tensor, rows: Tensor, device: torch.device, hot: FeatureCache | None = None) -> Tensor:
    """Returns the rows `[n, …]` of `values` `[M, …]` on `device`, for `rows` `[n]` on any device.

    From pinned memory of the host a GPU reads the rows over the bus by itself, but for those that are `hot`. From other
    memory the host gathers them, with all its threads, into pinned memory, from which the copy runs beside what the
    device is doing.
    """
    return backend("gather", device).gather_rows(values, rows, device, hot)
