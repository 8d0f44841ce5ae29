"""What a sampler reads, and what it draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor

from legnn.ops.csr.padded import PaddedAdjacency, PaddedLabelEdges

Fanout = int | None
"""How many neighbors a node draws; None for all of them."""


@dataclass(frozen=True, eq=False)
class SamplingRows:
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
    gaps: Tensor
    """`[H]` ascending: entry `e` of the class rows without seeds is at `e + (gaps <= e).sum()` in `class_col`."""
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
    """`[E]` the sources, numbered as in `SampledNodes`."""
    edge: Tensor | None
    """`[E]` which edge it is, of the adjacency or of the class rows; None if not requested."""
    edge_count: Tensor
    """`[R]` how many edges each target has in the whole graph."""
    num_edges: int
    """How many of the `E` edges are those of targets."""
    num_targets: int
    """`R`: the targets are the first `R` nodes."""


class SampledNodes(NamedTuple):
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


class BlockSizes(NamedTuple):
    """Sizes of one block of a sample."""

    added: int
    """Source nodes that are no targets."""
    edges: int
    senders: int
    shown: int
    """Targets that show a label."""


class PaddedNodes(NamedTuple):
    """The nodes of a padded sample, `[P]`: those that each layer adds, and padding after them."""

    nodes: Tensor
    degree: Tensor
    label_of: Tensor
    """The class that each of them shows, -1 for none."""
    node_type: Tensor | None
    is_real: Tensor
    """Bool; the values of padding are those of the first node, a seed, which shows no label."""


class PaddedRows(NamedTuple):
    """The edges of one block: padding nodes have none, and padding edges come after the last row."""

    adjacency: PaddedAdjacency
    edge_count: Tensor | None
    """`[M]`, as the next two a field of `graph.blocks.LabelBlock`."""
    shown: PaddedLabelEdges
    senders: PaddedLabelEdges


class PaddedSample(NamedTuple):
    """A sample drawn into memory of fixed sizes, which may not have held it."""

    nodes: PaddedNodes
    rows: list[PaddedRows]
    """Of each block, from the input on."""
    at_input: PaddedLabelEdges
    shown_count: Tensor
    """`[C]` how many nodes show each class."""
    counts: Tensor
    """`[K + 1, 4]` the `BlockSizes` of what was drawn, from the last block to the input. In the last row, whether a
    seed shows a label, in which case the sample is wrong, and at the end how many input nodes show one."""


class Sampler(Protocol):
    """Draws one sample, layer by layer, from the last layer to the first."""

    def __init__(self, rows: SamplingRows, seeds: Tensor, number: Tensor) -> None:
        """Starts at `seeds` (int64 `[B]`, each once). `number` `[M]` is scratch memory, all zeros."""

    def draw_layer(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> DrawnLayer:
        """Draws for every node so far and for every label that a layer drawn before reads."""

    def finish(self) -> SampledNodes:
        """Returns the nodes of the sample, and leaves the scratch memory all zeros."""
