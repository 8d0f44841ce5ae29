"""Samples drawn into fixed sizes on a GPU without synchronizing, so that drawing them can be captured as a CUDA graph.

They are what `padding.pad_sample` makes of `sampling.sample_label_graph`, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph.blocks import SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.graph.padding import SampleSizes, padded_blocks
from legnn.graph.sampling import rows_of
from legnn.ops.sample.scratch import borrow_zeros
from legnn.ops.sample.types import BlockSizes, SamplingRows


class DrawnSample(NamedTuple):
    """A padded sample, and what was counted when it was drawn."""

    graph: SampledLabelGraph
    counts: Tensor
    """See `ops.sample.types.PaddedSample`."""


def draw_padded_sample(
    graph: LabelGraph,
    rows: SamplingRows,
    seeds: Tensor,
    fanouts: Sequence[int],
    key: Tensor,
    sizes: SampleSizes,
    scratch: Tensor,
) -> DrawnSample:
    """Draws a sample of `seeds` (int64 `[B]`, at least one) that is right if `has_room` says so of its counts.

    Args:
        graph: the whole graph; the labels that nodes show are read from `rows` alone.
        rows: `rows_of` a graph with the same edges.
        fanouts: one for each layer, from the input on.
        key: int64 `[2]`, two 32-bit words on the device, which determine what is drawn.
        scratch: int32 `[M]`, zeros, which it is again when the sample is drawn.
    """
    # Triton takes a moment to import
    from legnn.ops.sample.triton_padded import draw_padded

    drawn = draw_padded(
        rows, graph.adjacency.weight, graph.node_type, seeds, fanouts, key, sizes.blocks, sizes.shown, scratch
    )
    blocks = padded_blocks(drawn.nodes, drawn.rows, drawn.shown_count, graph.label_adjacency)
    return DrawnSample(SampledLabelGraph(drawn.nodes.nodes, blocks, drawn.at_input), drawn.counts)


def has_room(sizes: SampleSizes, counts: Sequence[Sequence[int]]) -> bool:
    """Whether `sizes` held a sample with these counts, and no seed of it showed a label."""
    *blocks, (shows, _, _, shown) = counts
    return not shows and sizes.hold(SampleSizes(tuple(BlockSizes(*block) for block in reversed(blocks)), shown))


def sample_padded(
    graph: LabelGraph, seeds: Tensor, fanouts: Sequence[int], key: tuple[int, int], planned: Sequence[SampleSizes]
) -> SampledLabelGraph | None:
    """Returns the sample padded to the first of the `planned` sizes that hold it, None if none does.

    None also where a seed shows a label. Synchronizes once for each size that is tried.
    """
    rows, words = rows_of(graph), torch.tensor(key).to(seeds.device)
    for sizes in planned:
        with borrow_zeros(graph.adjacency) as scratch:
            drawn = draw_padded_sample(graph, rows, seeds, fanouts, words, sizes, scratch)
        if has_room(sizes, drawn.counts.tolist()):
            return drawn.graph
    return None
