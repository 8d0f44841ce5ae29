"""Where the states between the stages of layer-wise inference lie: on the device, in the host's memory, or on disk.

They are `[M, D]`, two or three times, and by far the largest need of memory on a graph of a hundred million nodes. What
is computed from them is the same wherever they lie.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from legnn.errors import OutOfMemory
from legnn.training.memory import host_free_bytes, in_gib

HOST_SHARE = 0.5
"""The part of the host's free memory that states may take: the mapped pages of the graph are in the rest."""
READERS = 32
"""Threads that read rows for a GPU, or from disk, where each waits for one page at a time: so more than cores."""
ROWS_OF_A_READER = 512
"""Below so many rows for each, starting another thread costs more than it gains."""

Location = Literal["device", "host", "disk"]


@dataclass(frozen=True, eq=False)
class StateStore:
    """`[M, D]` the states of nodes, of which some rows are written and read; rows that were not are undefined."""

    values: Tensor
    location: Location
    pin: bool = False
    """Whether rows of the host's memory that are read for the device are pinned: they are copied while it computes."""

    def read(self, nodes: Tensor, device: torch.device) -> Tensor:
        """The rows of `nodes` `[n]` on `device`, where they are computed with."""
        if self.location == "device":
            return self.values.index_select(0, nodes.to(self.values.device))
        return self.read_to_host(nodes).to(device, non_blocking=True)

    def read_to_host(self, nodes: Tensor) -> Tensor:
        """The rows of `nodes` `[n]` in the host's memory, from where they will be copied to the device."""
        nodes = nodes.cpu()
        rows = torch.empty(nodes.numel(), self.values.size(1), dtype=self.values.dtype, pin_memory=self.pin)
        readers = min(READERS, nodes.numel() // ROWS_OF_A_READER)
        if readers and (self.pin or self.location == "disk"):
            # by NumPy: every thread that calls PyTorch would start as many threads as there are cores
            values, out = (tensor.view(torch.uint8).numpy() for tensor in (self.values, rows))
            parts = zip(np.array_split(nodes.numpy(), readers), np.array_split(out, readers), strict=True)
            list(_pool(os.getpid()).map(lambda part: np.take(values, part[0], axis=0, out=part[1], mode="clip"), parts))
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

    def empty_like(self, *, zeros: bool) -> StateStore:
        """New states of the same shape in the same location."""
        allocate = torch.zeros_like if zeros else torch.empty_like
        values = allocate(self.values) if self.location != "disk" else _map_file(self.values.shape, self.values.dtype)
        return StateStore(values, self.location, self.pin)


def make_states(
    rows: Tensor,
    num_nodes: int,
    copies: int,
    *,
    location: Location | None,
    zeros: bool,
    device_bytes: int = 0,
    pin: bool = False,
) -> StateStore:
    """New states of `num_nodes` nodes.

    Args:
        rows: `[n, D]` some of them, as they are computed.
        copies: how many such states there will be at once.
        location: None for the first where all copies fit.
        zeros: whether rows that are not written are zeros.
        device_bytes: what states may take of the memory of the device, if that is not the host's.
        pin: as in `StateStore`.
    """
    shape = torch.Size([num_nodes, rows.size(1)])
    size = copies * shape.numel() * rows.element_size()
    location = location or choose_location(size, device_bytes)
    if location == "disk":
        _check_disk(size)
        return StateStore(_map_file(shape, rows.dtype), location, pin)
    allocate = torch.zeros if zeros else torch.empty
    values = allocate(shape, dtype=rows.dtype, device=rows.device if location == "device" else "cpu")
    return StateStore(values, location, pin)


def choose_location(size: int, device_bytes: int) -> Location:
    """The first location where states of `size` bytes fit: `device_bytes` of the device, the host, the disk."""
    if device_bytes > 0 and size <= device_bytes:
        return "device"
    return "host" if size <= HOST_SHARE * host_free_bytes() else "disk"


def state_folder() -> Path:
    """Where states are kept on disk: `TMPDIR`, or the system's folder for large temporary files."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        # `/tmp` is memory on many systems
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


def _check_disk(size: int) -> None:
    folder = state_folder()
    free = shutil.disk_usage(folder).free
    if size > free:
        in_memory = in_gib(host_free_bytes())
        raise OutOfMemory(
            f"the states between layers take {in_gib(size)}; {in_memory} of memory are free, and {in_gib(free)} in "
            f"{folder}: set TMPDIR to a folder with more, or give `precision=bf16` or a smaller `hidden`"
        )


def _map_file(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Zeros in a new file."""
    size = shape.numel() * dtype.itemsize
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
    return torch.frombuffer(mapped, dtype=dtype).view(shape)


@lru_cache(1)
def _pool(process: int) -> ThreadPoolExecutor:
    # one for each process: a forked process does not inherit the threads of a pool
    return ThreadPoolExecutor(READERS, "legnn-states")
