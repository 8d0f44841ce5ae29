"""Inputs and outputs of a sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

Fanout = int | None
"""The number of neighbors that a node draws; None for all of them."""


@dataclass(frozen=True)
class SamplingOptions:
    """Choices of how a sample is drawn, passed on from the settings to the kernels."""

    fanouts: Sequence[Fanout]
    """One for each layer, from the input on, as the paper gives them: `(15, 10, 5)`."""
    edges: bool = False
    """Whether the adjacency of each block has `edge`, the position of its edges in the whole graph."""


@dataclass(frozen=True, eq=False)
class SamplingView:
    """The rows that edges are drawn from: those of the nodes, and those of the labels without the seeds."""

    rowptr: Tensor
    """`[M + 1]`."""
    col: Tensor
    """`[edges]`."""
    degree: Tensor
    """`[M]`."""
    label_of: Tensor
    """`[M]` the class that each node shows, -1 for none; those of seeds are in it, and must not be read."""
    class_rowptr: Tensor
    """`[C + 1]`, as if `class_col` held no seeds."""
    class_col: Tensor
    """`[S]` the nodes that show each class, seeds included."""
    excluded_positions: Tensor
    """`[H]` of the seeds in `class_col`, ascending, the `k`-th less `k`: entry `e` of the class rows without seeds is
    at `e + (excluded_positions <= e).sum()`."""
    reads_all_labels: bool
    """Whether every layer but the first reads all labels, because there are label–label edges."""

    @property
    def num_classes(self) -> int:
        """`C`."""
        return self.class_rowptr.numel() - 1


class DrawnLayer(NamedTuple):
    """The edges drawn for one layer, for `R` targets and `C` labels."""

    rowptr: Tensor
    """`[R + C + 1]` the position of the first edge of each target, and then of each label."""
    col: Tensor
    """`[E]` the sources, numbered as in `DrawnNodes`."""
    edge: Tensor | None
    """`[E]` which edge it is, of the adjacency or of the class rows; None if not requested."""
    edge_count: Tensor
    """`[R]` how many edges each target has in the whole graph."""
    num_edges: int
    """The number of edges of targets among the `E` edges."""
    num_targets: int
    """`R`: the targets are the first `R` nodes."""


class DrawnNodes(NamedTuple):
    """The nodes of a sample: the seeds, those that the last layer reads, those that the one before it reads, …"""

    nodes: Tensor
    """`[N]`."""
    label_of: Tensor
    """`[N]` the class that each of them shows, -1 for none and for seeds."""
    degree: Tensor
    """`[N]`."""
    shown: Tensor
    """`[S]` the numbers of those that show a label, ascending."""
    y: Tensor
    """`[S]` the class that each of them shows."""
    shown_by_targets: list[int]
    """For each layer in the order drawn, how many of its targets show a label: the first of `shown`."""
