"""Estimates of the memory that a run needs, and the memory there is: `batch = auto` compares them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

SINGLE = 4

MATRICES_OF_A_LAYER = 6
"""`[M, D]` matrices that training allocates for each layer: 5.7 were measured with GAT, 4 with GCN."""

BYTES_OF_A_NODE = 40
"""Beside features and edges: the row of the graph and of its transpose, class, splits, degree and scratch memory."""

USABLE = 0.8
"""The part of the memory that a run may plan with: allocators leave gaps, and other processes need some."""

AT_ONCE = 0.25
"""A graph whose inference takes no more than this part of the memory is computed at once, which is faster."""


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
        """Of the data on a device: features, edges and their transpose, and what is stored of each node."""
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


def host_free_bytes() -> int:
    """Memory of the host that is free at the moment."""
    return min(_host_memory()[0], _cgroup_limit())


def host_total_bytes() -> int:
    """All the memory of the host, free or not."""
    return min(_host_memory()[1], _cgroup_limit())


def _host_memory() -> tuple[int, int]:
    """The free and the whole memory; without psutil, which some clusters do not have, all of it counts as free."""
    try:
        import psutil
    except ImportError:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return total, total
    memory = psutil.virtual_memory()
    return memory.available, memory.total


def _cgroup_limit() -> int:
    """The limit that a container or a scheduler sets."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            return int(text)
    return sys.maxsize
