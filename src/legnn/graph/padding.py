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
from legnn.ops.sample.types import BlockSizes, PaddedNodes, PaddedRows

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


def padded_blocks(
    nodes: PaddedNodes, rows: Sequence[PaddedRows], shown_count: Tensor, labels: Tensor | None
) -> list[LabelBlock]:
    """The blocks of a padded sample, from the input on; `labels` `[C, C]` are weights of label–label edges."""
    blocks: list[LabelBlock] = []
    for adjacency, edge_count, shown, senders in rows:
        num_targets, num_sources = adjacency.num_rows, adjacency.num_cols
        blocks.append(
            PaddedBlock(
                adjacency=adjacency,
                shown=shown.shown,
                y=shown.y,
                shown_key=shown.key,
                num_classes=shown.num_classes,
                label_adjacency=labels,
                node_type=None if nodes.node_type is None else nodes.node_type[:num_sources],
                nodes=nodes.nodes[:num_sources],
                senders=senders,
                source_degrees=nodes.degree[:num_sources],
                source_labels=nodes.label_of[:num_sources],
                edge_count=edge_count,
                shown_count=shown_count,
                is_real=nodes.is_real[:num_targets],
            )
        )
    return blocks


def pad_sample(sample: SampledLabelGraph, sizes: SampleSizes) -> SampledLabelGraph:
    """Returns the sample padded to `sizes`, which must hold it. Does not synchronize."""
    first, seeds = sample.blocks[0], sample.blocks[-1].num_nodes
    sources = sizes.sources(seeds)
    real = [block.adjacency.num_cols for block in sample.blocks]
    # from the seeds on, every layer adds nodes
    places = _Places.of([seeds, *real[::-1]], [seeds, *sources[::-1]], sample.nodes.device)
    rows = []
    for block, size, num_sources, num_targets in zip(
        sample.blocks, sizes.blocks, sources, [*sources[1:], seeds], strict=True
    ):
        adjacency, edge_count = block.adjacency, block.edge_count
        assert isinstance(adjacency, SampledAdjacency)
        col = _pad_values(places.new[adjacency.col].to(adjacency.col.dtype), size.edges, num_sources)
        weight = None if adjacency.weight is None else _pad_values(adjacency.weight, size.edges, 0)
        # padding nodes have no edges: their rows begin where the next one does
        rowptr = adjacency.rowptr.index_select(0, places.before[: num_targets + 1])
        shown = LabelEdges(block.shown, block.y, block.num_nodes, block.num_classes)
        rows.append(
            PaddedRows(
                PaddedAdjacency(rowptr, col, weight, num_sources, adjacency.fanout),
                None if edge_count is None else edge_count.index_select(0, places.old[:num_targets]),
                _pad_label_edges(shown, places, num_targets, size.shown),
                _pad_label_edges(block.senders, places, num_sources, size.senders),
            )
        )
    nodes, degree, label_of = (
        values.index_select(0, places.old) for values in (sample.nodes, first.source_degrees, first.source_labels)
    )
    node_type = None if first.node_type is None else first.node_type.index_select(0, places.old)
    padded = PaddedNodes(nodes, degree, label_of, node_type, places.is_real)
    blocks = padded_blocks(padded, rows, first.shown_count, first.label_adjacency)
    at_input = _pad_label_edges(sample.at_input, places, sources[0], sizes.shown)
    return SampledLabelGraph(padded.nodes, blocks, at_input, sample.class_mean)


class _Places(NamedTuple):
    """Where the `N` nodes of a sample are among the `P` of the padded one."""

    new: Tensor
    """`[N]` the position of each node."""
    before: Tensor
    """`[P]` how many nodes that are no padding come before each position."""
    is_real: Tensor
    """`[P]` bool."""
    old: Tensor
    """`[P]` the node at each position; for padding the first node, a seed, which shows no label."""

    @classmethod
    def of(cls, ends: Sequence[int], padded_ends: Sequence[int], device: torch.device) -> _Places:
        """For groups of nodes that end at `ends`, and at `padded_ends` with the padding after them."""
        new, before = (torch.empty(size, dtype=torch.long, device=device) for size in (ends[-1], padded_ends[-1]))
        is_real = torch.zeros(padded_ends[-1], dtype=torch.bool, device=device)
        begin = padded_begin = 0
        for end, padded_end in zip(ends, padded_ends, strict=True):
            there = slice(padded_begin, padded_begin + end - begin)
            torch.arange(there.start, there.stop, out=new[begin:end])
            torch.arange(begin, end, out=before[there])
            before[there.stop : padded_end] = end
            is_real[there] = True
            begin, padded_begin = end, padded_end
        return cls(new, before, is_real, before * is_real)


def _pad_label_edges(edges: LabelEdges, places: _Places, num_nodes: int, size: int) -> PaddedLabelEdges:
    # padding edges are from the last node, which is padding
    shown = _pad_values(places.new[edges.shown], size, num_nodes - 1)
    y, key = _pad_values(edges.y, size, 0), _pad_values(edges.y, size, edges.num_classes)
    return PaddedLabelEdges(shown, y, num_nodes, edges.num_classes, key)


def _pad_values(values: Tensor, size: int, by: float) -> Tensor:
    """`values` `[n]` and then the number `by`, `[size]`."""
    padded = torch.full((size,), by, dtype=values.dtype, device=values.device)
    padded[: values.numel()] = values
    return padded
