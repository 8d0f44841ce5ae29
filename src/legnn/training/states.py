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
from legnn.training.memory import free_bytes, in_gib

HOST_SHARE = 0.5
"""The part of the host's free memory that states may take: the mapped pages of the graph are in the rest."""
DEVICE_SHARE = 0.9
"""The part of a GPU's free memory that states and chunks may take together."""
READERS = 32
"""Threads that read rows for a GPU, or from disk, where each waits for one page at a time: so more than cores."""
ROWS_OF_A_READER = 512
"""Below so many rows for each, starting another thread costs more than it gains."""

Place = Literal["device", "host", "disk"]


@dataclass(frozen=True, eq=False)
class States:
    """`[M, D]` the states of nodes, of which some rows are written and read; rows that were not are undefined."""

    values: Tensor
    place: Place

    def take(self, nodes: Tensor, device: torch.device) -> Tensor:
        """The rows of `nodes` `[n]` on `device`, where they are computed with."""
        if self.place == "device":
            return self.values.index_select(0, nodes.to(self.values.device))
        return self.read(nodes, device).to(device, non_blocking=True)

    def read(self, nodes: Tensor, device: torch.device) -> Tensor:
        """The rows of `nodes` `[n]` in the host's memory, from where they will be copied to `device`."""
        nodes = nodes.cpu()
        # from pinned memory the copy runs beside what the device is doing
        is_pinned = device.type == "cuda"
        rows = torch.empty(nodes.numel(), self.values.size(1), dtype=self.values.dtype, pin_memory=is_pinned)
        readers = min(READERS, nodes.numel() // ROWS_OF_A_READER)
        if readers and (is_pinned or self.place == "disk"):
            # by NumPy: every thread that calls PyTorch would start as many threads as there are cores
            values, out = (tensor.view(torch.uint8).numpy() for tensor in (self.values, rows))
            parts = zip(np.array_split(nodes.numpy(), readers), np.array_split(out, readers), strict=True)
            list(_pool(os.getpid()).map(lambda part: np.take(values, part[0], axis=0, out=part[1], mode="clip"), parts))
        else:
            torch.index_select(self.values, 0, nodes, out=rows)
        return rows

    def put(self, nodes: Tensor, rows: Tensor) -> None:
        """Writes the rows of `nodes` `[n]`, which ascend."""
        if self.place != "device" and nodes.numel():
            begin, end = int(nodes[0]), int(nodes[-1]) + 1
            if end - begin == nodes.numel():
                # without a copy between
                self.values[begin:end].copy_(rows)
                return
        self.values[nodes.to(self.values.device)] = rows.to(self.values.device, self.values.dtype)

    def like(self, *, zeros: bool) -> States:
        """New states of the same shape in the same place."""
        values = _allocate(self.values.shape, self.values.dtype, self.place, self.values.device)
        # a new file holds zeros
        return States(values.zero_() if zeros and self.place != "disk" else values, self.place)


def make_states(
    rows: Tensor, num_nodes: int, copies: int, *, working_bytes: int, place: Place | None, zeros: bool
) -> States:
    """New states of `num_nodes` nodes.

    Args:
        rows: `[n, D]` some of them, as they are computed.
        copies: how many such states there will be at once.
        working_bytes: what computing a chunk takes on a GPU.
        place: None for the first where all copies fit.
        zeros: whether rows that are not written are zeros.
    """
    shape, device = torch.Size([num_nodes, rows.size(1)]), rows.device
    size = copies * shape.numel() * rows.element_size()
    place = place or choose_place(size, device, working_bytes)
    if place == "disk":
        _check_disk(size)
    values = _allocate(shape, rows.dtype, place, device)
    return States(values.zero_() if zeros and place != "disk" else values, place)


def choose_place(size: int, device: torch.device, working_bytes: int = 0) -> Place:
    """The first place where states of `size` bytes fit that are computed with on `device`: device, host, disk."""
    if device.type == "cuda":
        # what the allocator keeps for the next tensor is free for it
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if size + working_bytes <= DEVICE_SHARE * (free_bytes(device) + kept):
            return "device"
    return "host" if size <= HOST_SHARE * free_bytes(torch.device("cpu")) else "disk"


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
        there = in_gib(free_bytes(torch.device("cpu")))
        raise OutOfMemory(
            f"the states between layers take {in_gib(size)}; {there} of memory are free, and {in_gib(free)} in "
            f"{folder}: set TMPDIR to a folder with more, or give `precision=bf16` or a smaller `hidden`"
        )


def _allocate(shape: torch.Size, dtype: torch.dtype, place: Place, device: torch.device) -> Tensor:
    if place != "disk":
        return torch.empty(shape, dtype=dtype, device=device if place == "device" else "cpu")
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
