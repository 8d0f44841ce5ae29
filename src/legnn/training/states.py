"""Storage of the states between the stages of layer-wise inference: on the device, in the host's memory, or on disk.

They are `[M, D]`, two or three times, and by far the largest need of memory on a graph of a hundred million nodes. What
is computed from them is the same wherever they lie.
"""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from legnn.errors import OutOfMemory, in_gib

HOST_SHARE = 0.5
"""The part of the host's free memory that states may take: the mapped pages of the graph are in the rest."""
READERS = 32
"""Threads that read rows for a GPU, or from disk, where each waits for one page at a time: so more than cores."""
ROWS_OF_A_READER = 512
"""Below so many rows for each, starting another thread costs more than it gains."""

Location = Literal["device", "host", "disk"]


class StateStore:
    """`[M, D]` the states of nodes, of which some rows are written and read; the others are zeros.

    Args:
        shape: `M` and `D`.
        device: where rows are computed.
        pin: whether rows of the host's memory that are read for the device are pinned: they are copied while it
            computes.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: torch.dtype, device: torch.device, location: Location, *, pin: bool = False
    ) -> None:
        self.device, self.location, self.pin = device, location, pin
        if location == "device":
            self.values = torch.zeros(shape, dtype=dtype, device=device)
        else:
            size = math.prod(shape) * dtype.itemsize
            # memory of the host that no row is written to is never used: NumPy asks the system for zeros
            memory = _map_file(size) if location == "disk" else np.zeros(size, np.uint8)
            self.values = torch.frombuffer(memory, dtype=dtype).view(shape)

    def read(self, nodes: Tensor) -> Tensor:
        """The rows of `nodes` `[n]` on the device, where they are computed with."""
        if self.location == "device":
            return self.values.index_select(0, nodes.to(self.device))
        return self.read_to_host(nodes).to(self.device, non_blocking=True)

    def read_to_host(self, nodes: Tensor) -> Tensor:
        """The rows of `nodes` `[n]` in the host's memory, from where they will be copied to the device."""
        nodes = nodes.cpu()
        rows = torch.empty(nodes.numel(), self.values.size(1), dtype=self.values.dtype, pin_memory=self.pin)
        readers = min(READERS, nodes.numel() // ROWS_OF_A_READER)
        if readers and (self.pin or self.location == "disk"):
            # by NumPy: every thread that calls PyTorch would start as many threads as there are cores
            values, out = (tensor.view(torch.uint8).numpy() for tensor in (self.values, rows))
            parts = np.array_split(nodes.numpy(), readers), np.array_split(out, readers)
            with ThreadPoolExecutor(readers, "legnn-states") as pool:
                list(pool.map(lambda index, part: np.take(values, index, axis=0, out=part, mode="clip"), *parts))
        else:
            torch.index_select(self.values, 0, nodes, out=rows)
        return rows

    def write(self, nodes: Tensor, rows: Tensor) -> None:
        """Writes the rows of `nodes` `[n]`, which ascend."""
        if self.location != "device" and nodes.numel():
            begin, end = int(nodes[0]), int(nodes[-1]) + 1
            if end - begin == nodes.numel():
                # without a copy between
                self.values[begin:end].copy_(rows)
                return
        self.values[nodes.to(self.values.device)] = rows.to(self.values.device, self.values.dtype)

    def zeros_like(self) -> StateStore:
        """New states of the same shape in the same location."""
        shape = self.values.size(0), self.values.size(1)
        return StateStore(shape, self.values.dtype, self.device, self.location, pin=self.pin)


def choose_location(size: int, device_bytes: int, host_bytes: int) -> Location:
    """The first location where states of `size` bytes fit into what is free: the device, the host, the disk."""
    if size <= device_bytes and device_bytes > 0:
        return "device"
    return "host" if size <= HOST_SHARE * host_bytes else "disk"


def check_disk(size: int, host_bytes: int) -> None:
    """Raises `OutOfMemory` if states of `size` bytes do not fit on the disk."""
    folder = state_folder()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OutOfMemory(
            f"the states between layers take {in_gib(size)}; {in_gib(host_bytes)} of memory are free, and "
            f"{in_gib(free)} in {folder}: set TMPDIR to a folder with more, or give `train.precision=bf16` or a "
            "smaller `model.hidden`"
        )


def state_folder() -> Path:
    """The folder of states on disk: `TMPDIR`, or the system's folder for large temporary files."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        # `/tmp` is memory on many systems
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


def _map_file(size: int) -> mmap.mmap:
    """Zeros in a new file."""
    # it has no name, so that nothing is left of it when the process ends, however it ends
    with tempfile.TemporaryFile(dir=state_folder(), prefix="legnn-states-") as file:
        if hasattr(os, "posix_fallocate"):
            # or writing to a full disk would end the process
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    if hasattr(mmap, "MADV_RANDOM"):
        # neighbors lie anywhere: reading ahead would read what nobody asked for
        mapped.madvise(mmap.MADV_RANDOM)
    return mapped
