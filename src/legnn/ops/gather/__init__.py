"""Rows of a matrix that may lie in the host's memory while the device that reads them is a GPU."""

from __future__ import annotations

import torch
from torch import Tensor

from legnn.ops import select


def gather_rows(values: Tensor, rows: Tensor, device: torch.device) -> Tensor:
    """Returns the rows `[n, …]` of `values` `[M, …]` on `device`, for `rows` `[n]` on any device.

    From pinned memory of the host a GPU reads the rows over the bus by itself. From other memory the host gathers them,
    with all its threads, into pinned memory, from which the copy runs beside what the device is doing.
    """
    # not by comparing devices: `cuda` and `cuda:0` differ
    if values.device.type == device.type:
        return values.index_select(0, rows.to(values.device))
    kernels = select.kernels_for_device(device)
    if kernels is select.TRITON and values.is_contiguous() and values.is_pinned():
        return kernels.gather.gather_from_host(values, rows.to(device))
    return values.index_select(0, rows.to(values.device)).pin_memory().to(device, non_blocking=True)
