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

import torch
from torch import Tensor

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.ops.csr.adjacency import SampledAdjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.csr.padded import PaddedAdjacency, PaddedLabelEdges

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


def pad_sample(sample: SampledLabelGraph, sizes: SampleSizes) -> SampledLabelGraph:
    """Returns the sample padded to `sizes`, which must hold it. Does not synchronize."""
    seeds = sample.blocks[-1].num_nodes
    sources = sizes.sources(seeds)
    places = _Places.of(sample, seeds, sources)
    first = sample.blocks[0]
    # padding is a copy of the first seed, which shows no label
    nodes, degree, label = (
        values.index_select(0, places.old) for values in (sample.nodes, first.source_degrees, first.source_labels)
    )
    node_type = None if first.node_type is None else first.node_type.index_select(0, places.old)
    blocks: list[LabelBlock] = []
    targets = [*sources[1:], seeds]
    for block, size, num_sources, num_targets in zip(sample.blocks, sizes.blocks, sources, targets, strict=True):
        old, is_real = places.old[:num_targets], places.is_real[:num_targets]
        count = block.adjacency.rowptr.diff().index_select(0, old) * is_real
        rowptr = torch.zeros(num_targets + 1, dtype=count.dtype, device=count.device)
        torch.cumsum(count, 0, dtype=count.dtype, out=rowptr[1:])
        col = _pad(places.new[block.adjacency.col], size.edges, num_sources).to(block.adjacency.col.dtype)
        weight = None if block.adjacency.weight is None else _pad(block.adjacency.weight, size.edges, 0)
        shown = LabelEdges(block.shown, block.y, num_targets, block.num_classes)
        shown = _pad_label_edges(shown, places.new, num_targets, size.shown)
        blocks.append(
            PaddedBlock(
                adjacency=PaddedAdjacency(rowptr, col, weight, num_sources, _fanout(block)),
                shown=shown.shown,
                y=shown.y,
                shown_key=shown.key,
                num_classes=block.num_classes,
                label_adjacency=block.label_adjacency,
                node_type=None if node_type is None else node_type[:num_sources],
                nodes=nodes[:num_sources],
                senders=_pad_label_edges(block.senders, places.new, num_sources, size.senders),
                source_degrees=degree[:num_sources],
                source_labels=label[:num_sources],
                edge_count=None if block.edge_count is None else block.edge_count.index_select(0, old),
                shown_count=block.shown_count,
                is_real=is_real,
            )
        )
    at_input = _pad_label_edges(sample.at_input, places.new, sources[0], sizes.shown)
    return SampledLabelGraph(nodes, blocks, at_input, sample.class_mean)


class _Places(NamedTuple):
    """Where the nodes of a sample are when it is padded."""

    new: Tensor
    """`[N]` the position of each node."""
    old: Tensor
    """`[padded]` the node at each position; the first one for padding."""
    is_real: Tensor
    """`[padded]` bool."""

    @classmethod
    def of(cls, sample: SampledLabelGraph, seeds: int, sources: list[int]) -> _Places:
        """From the seeds on, every layer adds nodes, and padding after them, up to the sizes `sources`."""
        device = sample.nodes.device
        new = torch.empty(sample.nodes.numel(), dtype=torch.long, device=device)
        old = torch.zeros(sources[0], dtype=torch.long, device=device)
        is_real = torch.zeros(old.numel(), dtype=torch.bool, device=device)
        begin = padded = 0
        real = [block.adjacency.num_cols for block in sample.blocks]
        for end, padded_end in [(seeds, seeds), *zip(real[::-1], sources[::-1], strict=True)]:
            there = slice(padded, padded + end - begin)
            torch.arange(padded, there.stop, out=new[begin:end])
            torch.arange(begin, end, out=old[there])
            is_real[there] = True
            begin, padded = end, padded_end
        return cls(new, old, is_real)


def _fanout(block: LabelBlock) -> int | None:
    assert isinstance(block.adjacency, SampledAdjacency)
    return block.adjacency.fanout


def _pad(values: Tensor, size: int, by: float) -> Tensor:
    """`values` `[n]` and then the number `by`, `[size]`."""
    padded = torch.full((size,), by, dtype=values.dtype, device=values.device)
    padded[: values.numel()] = values
    return padded


def _pad_label_edges(edges: LabelEdges, new: Tensor, num_nodes: int, size: int) -> PaddedLabelEdges:
    """Label edges of padded nodes; padding edges are from the last node, which is padding."""
    shown = _pad(new[edges.shown], size, num_nodes - 1)
    return PaddedLabelEdges(
        shown, _pad(edges.y, size, 0), num_nodes, edges.num_classes, _pad(edges.y, size, edges.num_classes)
    )
