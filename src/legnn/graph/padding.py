"""Samples padded to fixed sizes: the steps over them have the same shapes, and can be captured as CUDA graphs.

Padding nodes come after the nodes that a layer adds, so that the targets of every block are still the first of its
sources. They have no edges and show no label, no edge leads from them, and `LabelBlock.valid_mask` keeps them out of
the statistics of a batch norm: they change no node of the sample, and get no gradient. Seeds are not padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph.blocks import SampledLabelGraph
from legnn.ops.csr.label_edges import LabelEdges

MULTIPLE = 128
"""Sizes are rounded up to multiples of this, which suits products of matrices."""


class SampleSizes(NamedTuple):
    """Sizes of a sample, a number for each block, but for its seeds."""

    added: tuple[int, ...]
    """Source nodes that are no targets."""
    edges: tuple[int, ...]
    senders: tuple[int, ...]
    shown: tuple[int, ...]
    """Input nodes that show a label; then the targets of each block that do."""

    @classmethod
    def from_sample(cls, sample: SampledLabelGraph) -> SampleSizes:
        """The sizes of a sample that is not padded."""
        blocks = sample.blocks
        return cls(
            tuple(block.adjacency.num_cols - block.num_nodes for block in blocks),
            tuple(block.adjacency.num_edges for block in blocks),
            tuple(block.senders.shown.numel() for block in blocks),
            (sample.at_input.shown.numel(), *(block.shown.numel() for block in blocks)),
        )

    @classmethod
    def padded(cls, sizes: Sequence[SampleSizes], factor: float) -> SampleSizes:
        """Sizes more than `factor` times the largest of each kind, rounded up; 0 for what no sample has."""

        def round_up(size: int) -> int:
            return 0 if size == 0 else -(-int(size * factor + 1) // MULTIPLE) * MULTIPLE

        sizes_above = cls(
            *(tuple(round_up(max(same)) for same in zip(*kind, strict=True)) for kind in zip(*sizes, strict=True))
        )
        # a block needs at least one padding node
        return sizes_above._replace(added=tuple(max(size, MULTIPLE) for size in sizes_above.added))

    def fits(self, other: SampleSizes) -> bool:
        """Whether a sample of the sizes `other` fits in these, with a padding node in each block."""
        return all(size > needed for size, needed in zip(self.added, other.added, strict=True)) and all(
            size >= needed for kinds in zip(self, other, strict=True) for size, needed in zip(*kinds, strict=True)
        )

    def sources(self, seeds: int) -> list[int]:
        """Source nodes of every block of a sample of so many seeds."""
        return list(accumulate(self.added[::-1], initial=seeds))[:0:-1]


def pad_sample(sample: SampledLabelGraph, sizes: SampleSizes) -> SampledLabelGraph:
    """Returns the sample padded to `sizes`, in which it must fit. Does not synchronize."""
    first, seeds = sample.blocks[0], sample.blocks[-1].num_nodes
    sources = sizes.sources(seeds)
    # from the seeds on, every layer adds nodes
    ends = [seeds, *(block.adjacency.num_cols for block in sample.blocks[::-1])]
    positions = _Positions.of(ends, [seeds, *sources[::-1]], sample.nodes.device)
    nodes, degree, label_of = (
        values.index_select(0, positions.old) for values in (sample.nodes, first.source_degrees, first.source_labels)
    )
    node_type = None if first.node_type is None else first.node_type.index_select(0, positions.old)
    blocks = []
    for block, *(num_edges, num_senders, num_shown), num_sources, num_targets in zip(
        sample.blocks, sizes.edges, sizes.senders, sizes.shown[1:], sources, [*sources[1:], seeds], strict=True
    ):
        rows, count = block.adjacency, block.edge_count
        adjacency = replace(
            rows,
            # padding nodes have no edges: their rows begin where the next one does
            rowptr=rows.rowptr.index_select(0, positions.before[: num_targets + 1]),
            col=_pad_values(positions.new[rows.col].to(rows.col.dtype), num_edges, num_sources),
            weight=None if rows.weight is None else _pad_values(rows.weight, num_edges, 0),
            num_cols=num_sources,
            edge=None,
        )
        to_nodes = _pad_label_edges(block.to_nodes, positions, num_targets, num_shown)
        padded = replace(
            block,
            adjacency=adjacency,
            shown=to_nodes.shown,
            y=to_nodes.y,
            padded_y=to_nodes.padded_y,
            node_type=None if node_type is None else node_type[:num_sources],
            nodes=nodes[:num_sources],
            senders=_pad_label_edges(block.senders, positions, num_sources, num_senders),
            source_degrees=degree[:num_sources],
            source_labels=label_of[:num_sources],
            edge_count=None if count is None else count.index_select(0, positions.old[:num_targets]),
            valid_mask=positions.valid_mask[:num_targets],
        )
        blocks.append(padded)
    at_input = _pad_label_edges(sample.at_input, positions, sources[0], sizes.shown[0])
    return replace(sample, nodes=nodes, blocks=blocks, at_input=at_input)


class _Positions(NamedTuple):
    """Positions of the `N` nodes of a sample among the `P` of the padded one."""

    new: Tensor
    """`[N]` the position of each node."""
    before: Tensor
    """`[P]` how many nodes that are no padding come before each position."""
    valid_mask: Tensor
    """`[P]` bool: False for padding."""
    old: Tensor
    """`[P]` the node at each position; for padding the first node, a seed, which shows no label."""

    @classmethod
    def of(cls, ends: Sequence[int], padded_ends: Sequence[int], device: torch.device) -> _Positions:
        """For groups of nodes that end at `ends`, and at `padded_ends` with the padding after them."""
        new, before = (torch.empty(size, dtype=torch.long, device=device) for size in (ends[-1], padded_ends[-1]))
        valid_mask = torch.zeros(padded_ends[-1], dtype=torch.bool, device=device)
        begin = padded_begin = 0
        for end, padded_end in zip(ends, padded_ends, strict=True):
            group = slice(padded_begin, padded_begin + end - begin)
            torch.arange(group.start, group.stop, out=new[begin:end])
            torch.arange(begin, end, out=before[group])
            before[group.stop : padded_end] = end
            valid_mask[group] = True
            begin, padded_begin = end, padded_end
        return cls(new, before, valid_mask, before * valid_mask)


def _pad_label_edges(edges: LabelEdges, positions: _Positions, num_nodes: int, size: int) -> LabelEdges:
    # padding edges are from the last node, which is padding
    shown = _pad_values(positions.new[edges.shown], size, num_nodes - 1)
    y, padded_y = _pad_values(edges.y, size, 0), _pad_values(edges.y, size, edges.num_classes)
    return LabelEdges(shown, y, num_nodes, edges.num_classes, padded_y)


def _pad_values(values: Tensor, size: int, by: float) -> Tensor:
    """`values` `[n]` and then the number `by`, `[size]`."""
    padded = torch.full((size,), by, dtype=values.dtype, device=values.device)
    padded[: values.numel()] = values
    return padded
