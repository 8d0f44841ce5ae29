"""Estimates of the memory that a run needs, and the memory there is: `batch = auto` compares them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

SINGLE = 4

MATRICES_OF_A_LAYER = 6
"""`[M, D]` matrices that training allocates for each layer: 5.7 were measured with GAT, 4 with GCN."""

BYTES_OF_A_NODE = 40
"""Beside features and edges: the row of the graph and of its transpose, class, splits, degree and scratch memory."""

USABLE = 0.8
"""The part of the memory that a run may plan with: allocators leave gaps, and other processes need some."""


NODES_AT_A_TIME = 2**22
"""Nodes that layer-wise inference divides into chunks together."""

DIVIDING = 48
"""Bytes of each of them that this takes: positions, edges and their sums, in 64 bits."""


CHUNK_BYTES = {"cpu": 2**25, "cuda": 2**32}
"""Bytes of one matrix of a chunk of layer-wise inference, by device: enough to keep it busy."""

CHUNK_FROM_HOST = 2**29
"""The same on a GPU, where the graph is in the host's memory: several are prepared there at once, in pinned memory."""

SAMPLERS = 4
"""Threads that prepare chunks for a GPU from a graph in the host's memory."""

MATRICES_OF_A_CHUNK = 3
"""Matrices of a chunk that are in memory at once."""


@dataclass(frozen=True)
class Size:
    """The sizes that the memory of a run depends on."""

    nodes: int
    edges: int
    features: int
    classes: int
    hidden: int
    layers: int
    edge_matrices: int = 0
    """`[E, D]` matrices of each layer, see `Model`."""

    @property
    def graph_bytes(self) -> int:
        """Of the data on a device: features, edges and their transpose, and what is kept of each node."""
        return self.feature_bytes + self.edges * 4 * SINGLE + self.nodes * BYTES_OF_A_NODE

    @property
    def feature_bytes(self) -> int:
        """Of the features."""
        return self.nodes * self.features * SINGLE

    @property
    def training_bytes(self) -> int:
        """Of one full-batch step, the data included."""
        matrices = (MATRICES_OF_A_LAYER * self.layers + 2) * self.hidden + self.features + 4 * self.classes
        return self.graph_bytes + self.nodes * matrices * SINGLE + self.layers * self._edge_bytes

    @property
    def inference_bytes(self) -> int:
        """Of predicting all nodes at once, the data included."""
        matrices = 4 * self.hidden + self.features + 2 * self.classes
        return self.graph_bytes + self.nodes * matrices * SINGLE + self._edge_bytes

    @property
    def _edge_bytes(self) -> int:
        return self.edge_matrices * self.edges * self.hidden * SINGLE


def plan_inference(
    size: Size, labeled: int, *, place: str, device: str = "cpu", itemsize: int = SINGLE, copies: int = 2
) -> dict[str, int]:
    """Anonymous memory of the host that predicting class and confidence of all nodes layer by layer takes at most.

    For a graph that is mapped from a prepared folder, whose pages the system may drop: they are not counted. Neither is
    what the libraries and the driver of a GPU take.

    Args:
        labeled: how many nodes are labeled.
        place: of the states (`states.Place`): only those in the host's memory are counted.
        device: the type of the device that computes.
        itemsize: bytes of an entry of the states.
        copies: how many states there are at once.
    """
    nodes = size.nodes
    samplers, chunk = (1, CHUNK_BYTES["cpu"]) if device == "cpu" else (SAMPLERS, CHUNK_FROM_HOST)
    return {
        "splits": 3 * nodes,
        "nodes of the splits, and candidates": 8 * (nodes + labeled),
        "folds": 8 * nodes,
        "degrees": 4 * nodes,
        "shown labels, and their places": 3 * 4 * nodes,
        "scratch of the samplers": samplers * 4 * nodes,
        "nodes that each layer needs": (size.layers + 1) * nodes,
        "nodes to predict": 2 * 8 * nodes,
        "class and confidence": 16 * nodes,
        "dividing nodes into chunks": DIVIDING * min(nodes, NODES_AT_A_TIME),
        "chunks": (MATRICES_OF_A_CHUNK + samplers - 1) * chunk,
        "states": copies * nodes * size.hidden * itemsize if place == "host" else 0,
    }


def free_bytes(device: torch.device) -> int:
    """Memory of `device` that is free at the moment."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min(_meminfo("MemAvailable"), _cgroup_limit())


def total_bytes(device: torch.device) -> int:
    """All the memory of `device`, free or not."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return min(_meminfo("MemTotal"), _cgroup_limit())


def in_gib(size: int) -> str:
    """`"1.5 GiB"`."""
    return f"{size / 2**30:.1f} GiB"


UNKNOWN = 1 << 62
"""Stands for a size that the system does not give."""


def _meminfo(name: str) -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _cgroup_limit() -> int:
    """The limit that a container or a scheduler sets."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            return int(text)
    return UNKNOWN
