"""Neighbor sampling of a label graph: uniform, without replacement, so many neighbors a node in each layer.

Who is drawn is a hash of the draw's key, the node and the place, as dropout is (`ops.reference.kept`): the same on
every device and for every way of sharing the seeds out among processes, and a checkpoint has nothing to keep of it.

`plain` is the reference. `walk` does the same with nothing of the size of the graph made for a batch, over the kernels
of one device: `cpu` (numba) or `gpu` (Triton). Every form draws the same edges; they differ in how nodes that are not
seeds are numbered. This is the one place that chooses.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import cast

import torch
from torch import Tensor

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.graph.sampling import full_neighbors, walk
from legnn.graph.sampling.full_neighbors import all_senders
from legnn.graph.sampling.walk import Kernels
from legnn.ops.sample import reference as plain
from legnn.ops.sample.fanout import Fanout
from legnn.ops.sample.reference import Drawn, compact, draw

__all__ = [
    "Drawn",
    "Fanout",
    "all_neighbors",
    "all_senders",
    "compact",
    "draw",
    "kernels_for",
    "sample_label_graph",
]


def sample_label_graph(
    graph: LabelGraph, seeds: Tensor, fanouts: Sequence[Fanout], key: tuple[int, int], *, edges: bool = False
) -> SampledLabelGraph:
    """What the layers read to compute the nodes `seeds` `[B]` (each once) from a sample of their neighbors.

    `fanouts` has a number for each layer, from the input side, as the paper gives them: `(15, 10, 5)`. In layer `k`
    every node that is computed draws `fanouts[k]` of the edges that come in at it, and every label that a later layer
    reads draws as many of the nodes that show it. No seed shows its label, to itself or to anybody: what its label
    hears from it would come back to it. `key` is two 32-bit words. With `edges`, blocks also say which edges of the
    whole graph theirs are.
    """
    kernels = kernels_for(seeds.device)
    form = plain.sample if kernels is None else partial(walk.sample, kernels)
    return form(graph, seeds, fanouts, key, edges=edges)


def all_neighbors(graph: LabelGraph, targets: Tensor) -> LabelBlock:
    """`full_neighbors.all_neighbors`."""
    return full_neighbors.all_neighbors(kernels_for(targets.device), graph, targets)


def kernels_for(device: torch.device) -> Kernels | None:
    """The kernels of a device; None for the plain form."""
    if device.type == "cpu":
        # compiled on their first call: importing them takes a moment that not every command needs
        from legnn.ops.sample import numba_kernels as cpu

        return cast(Kernels, cpu)
    return _gpu() if device.type == "cuda" else None


@lru_cache(1)
def _gpu() -> Kernels | None:
    try:
        from legnn.ops.sample import triton_kernels as gpu
    except ImportError as error:
        warnings.warn(f"no Triton here ({error}): sampling on this GPU takes the slow, plain form", stacklevel=2)
        return None
    return cast(Kernels, gpu)
