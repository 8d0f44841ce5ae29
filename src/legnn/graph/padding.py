"""Samples padded to fixed sizes: the steps over them have the same shapes, and can be captured as CUDA graphs.

Padding nodes come after the real nodes that a layer adds, so that the targets of every block are still the first of
its sources. They have no edges and show no label, no edge leads from them, and `PaddedBlock.real` keeps them out of the
statistics of a batch norm: they change no real node, and get no gradient. Seeds are not padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from torch import Tensor

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.ops.csr.adjacency import SampledAdjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.csr.padded import PaddedLabelEdges
from legnn.ops.pad import NodeGroup, NodeValues, RowSizes, SampledRows, padding_for
from legnn.ops.pad.types import PaddingKernels

MULTIPLE = 128
"""Sizes are rounded up to multiples of this, which suits products of matrices."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PaddedBlock(LabelBlock):
    """A block of a padded sample."""

    is_real: Tensor
    """`[M]` bool: whether a target is a node, and not padding."""
    shown_key: Tensor
    """`[S]` the class that each of `shown` shows, the number of classes for padding."""

    @property
    def real(self) -> Tensor | None:
        """`[M]` bool."""
        return self.is_real

    @cached_property
    def to_nodes(self) -> LabelEdges:
        """`Y` of the target nodes."""
        edges = PaddedLabelEdges(self.shown, self.y, self.num_nodes, self.num_classes, self.shown_key)
        edges.__dict__["label_of"] = self.source_labels[: self.num_nodes]
        return edges


class BlockSizes(NamedTuple):
    """Sizes of one block."""

    added: int
    """Source nodes that are no targets."""
    edges: int
    senders: int
    shown: int
    """Targets that show a label."""


class SampleSizes(NamedTuple):
    """Sizes of a sample, but for its seeds."""

    blocks: tuple[BlockSizes, ...]
    shown: int
    """Input nodes that show a label."""

    @classmethod
    def of(cls, sample: SampledLabelGraph) -> SampleSizes:
        """The sizes of a sample that is not padded."""
        blocks = (
            BlockSizes(
                block.adjacency.num_cols - block.num_nodes,
                block.adjacency.num_edges,
                block.senders.shown.numel(),
                block.shown.numel(),
            )
            for block in sample.blocks
        )
        return cls(tuple(blocks), sample.at_input.shown.numel())

    @classmethod
    def above(cls, sizes: Sequence[SampleSizes], factor: float) -> SampleSizes:
        """Sizes more than `factor` times the largest of each kind, rounded up; what no sample has gets no room."""

        def room(size: int) -> int:
            return 0 if size == 0 else -(-int(size * factor + 1) // MULTIPLE) * MULTIPLE

        blocks = (
            BlockSizes(*(room(max(kind)) for kind in zip(*same, strict=True)))
            for same in zip(*(one.blocks for one in sizes), strict=True)
        )
        # a block needs at least one padding node
        blocks = (block._replace(added=max(block.added, MULTIPLE)) for block in blocks)
        return cls(tuple(blocks), room(max(one.shown for one in sizes)))

    def hold(self, other: SampleSizes) -> bool:
        """Whether a sample of the sizes `other` fits."""
        return other.shown <= self.shown and all(
            mine.added > theirs.added and all(one >= two for one, two in zip(mine[1:], theirs[1:], strict=True))
            for mine, theirs in zip(self.blocks, other.blocks, strict=True)
        )

    def sources(self, seeds: int) -> list[int]:
        """Source nodes of every block of a sample of so many seeds."""
        return list(accumulate((block.added for block in self.blocks[::-1]), initial=seeds))[:0:-1]


def pad_sample(
    sample: SampledLabelGraph, sizes: SampleSizes, kernels: PaddingKernels | None = None
) -> SampledLabelGraph:
    """Returns the sample padded to `sizes`, which must hold it, by the fastest `kernels` for the device if not given.

    Does not synchronize.
    """
    kernels = kernels or padding_for(sample.nodes.device)
    seeds, first = sample.blocks[-1].num_nodes, sample.blocks[0]
    sources = sizes.sources(seeds)
    real = [block.adjacency.num_cols for block in sample.blocks]
    # from the seeds on, every layer adds nodes
    groups = [NodeGroup(seeds, seeds), *map(NodeGroup, real[::-1], sources[::-1])]
    values = NodeValues(sample.nodes, first.source_degrees, first.source_labels, first.node_type)
    padded = kernels.pad_nodes(values, groups)
    nodes, degree, label, node_type = padded.values
    blocks: list[LabelBlock] = []
    targets = [*sources[1:], seeds]
    for block, size, num_sources, num_targets in zip(sample.blocks, sizes.blocks, sources, targets, strict=True):
        assert isinstance(block.adjacency, SampledAdjacency)
        shown = LabelEdges(block.shown, block.y, block.num_nodes, block.num_classes)
        rows = kernels.pad_rows(
            SampledRows(block.adjacency, block.edge_count, shown, block.senders),
            padded,
            RowSizes(num_targets, num_sources, size.edges, size.shown, size.senders),
        )
        blocks.append(
            PaddedBlock(
                adjacency=rows.adjacency,
                shown=rows.shown.shown,
                y=rows.shown.y,
                shown_key=rows.shown.key,
                num_classes=block.num_classes,
                label_adjacency=block.label_adjacency,
                node_type=None if node_type is None else node_type[:num_sources],
                nodes=nodes[:num_sources],
                senders=rows.senders,
                source_degrees=degree[:num_sources],
                source_labels=label[:num_sources],
                edge_count=rows.edge_count,
                shown_count=block.shown_count,
                is_real=padded.is_real[:num_targets],
            )
        )
    at_input = kernels.pad_label_edges(sample.at_input, padded, sources[0], sizes.shown)
    return SampledLabelGraph(nodes, blocks, at_input, sample.class_mean)
