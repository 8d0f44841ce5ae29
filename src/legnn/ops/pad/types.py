"""What padding reads, and what it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from torch import Tensor

from legnn.ops.csr.adjacency import SampledAdjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.csr.padded import PaddedAdjacency, PaddedLabelEdges


class NodeGroup(NamedTuple):
    """Nodes that one layer adds to a sample, and padding after them; each group begins where the one before ends."""

    end: int
    """In the sample."""
    padded_end: int


class NodeValues(NamedTuple):
    """What is known of the nodes of a sample, `[N]`."""

    nodes: Tensor
    degree: Tensor
    label_of: Tensor
    """The class that each of them shows, -1 for none."""
    node_type: Tensor | None

    def map(self, function: Callable[[Tensor], Tensor]) -> NodeValues:
        """Returns `function` of each."""
        node_type = None if self.node_type is None else function(self.node_type)
        return NodeValues(function(self.nodes), function(self.degree), function(self.label_of), node_type)


class PaddedNodes(NamedTuple):
    """The nodes of a padded sample."""

    values: NodeValues
    """`[P]`; those of padding are the values of the first node, a seed, which shows no label."""
    is_real: Tensor
    """`[P]` bool."""
    before: Tensor
    """`[P]` how many nodes that are no padding come before each position."""
    new: Tensor
    """`[N]` the position of each node."""


class SampledRows(NamedTuple):
    """The edges of one block of a sample."""

    adjacency: SampledAdjacency
    edge_count: Tensor | None
    """`[M]`, as the next two a field of `graph.blocks.LabelBlock`."""
    shown: LabelEdges
    senders: LabelEdges


class PaddedRows(NamedTuple):
    """The same, padded."""

    adjacency: PaddedAdjacency
    edge_count: Tensor | None
    shown: PaddedLabelEdges
    senders: PaddedLabelEdges


class RowSizes(NamedTuple):
    """Sizes of `PaddedRows`."""

    targets: int
    sources: int
    edges: int
    shown: int
    senders: int


class PaddingKernels(Protocol):
    """Pads samples; does not synchronize."""

    def pad_nodes(self, values: NodeValues, groups: list[NodeGroup]) -> PaddedNodes:
        """Returns the nodes with padding after each group."""

    def pad_rows(self, rows: SampledRows, nodes: PaddedNodes, sizes: RowSizes) -> PaddedRows:
        """Returns the edges of padded nodes: padding nodes have none, and padding edges come after the last row."""

    def pad_label_edges(self, edges: LabelEdges, nodes: PaddedNodes, num_nodes: int, size: int) -> PaddedLabelEdges:
        """Returns `size` label edges of padded nodes; padding edges are from the last of them, which is padding."""
