"""Batches of an epoch: which nodes a step computes, and the sample of their neighbors that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from legnn.graph import LabelGraph, SampledLabelGraph, sample_label_graph
from legnn.ops.sample import SamplingOptions
from legnn.training.layer_wise import LayerWise
from legnn.training.prefetch import prefetch
from legnn.training.ranks import Ranks


def draw_nodes(nodes: Tensor, count: int, generator: Generator) -> Tensor:
    """Returns `count` of `nodes`, or all if there are fewer, uniformly and in random order.

    Few of many are drawn one by one and repeated ones dropped: shuffling 100 million to take one million of them would
    take seconds in every epoch.
    """
    if 2 * count >= nodes.numel():
        index = torch.randperm(nodes.numel(), generator=generator)[:count]
    else:
        index = torch.empty(0, dtype=torch.long)
        while index.numel() < count:
            index = torch.cat([index, torch.randint(nodes.numel(), (2 * count,), generator=generator)])
            # each at its first position only
            index = index[np.sort(np.unique(index.numpy(), return_index=True)[1])]
        index = index[:count]
    return nodes[index.to(nodes.device)]


class Batch(NamedTuple):
    """The input of a step of one process, on the device.

    Its seeds are `n` predicted nodes, then `u` candidates. Where it has neither, one seed of another process stands in
    for them, which counts nowhere.
    """

    x: Tensor
    graph: SampledLabelGraph
    truth: Tensor
    """`[n + u]` the classes of the seeds, -1 where unknown."""
    candidate_index: Tensor
    """`[u]` positions of the candidates among those of the epoch."""
    num_predicted: int
    """Predicted nodes of the step over all processes."""

    @property
    def num_local(self) -> int:
        """`n`."""
        return self.truth.numel() - self.candidate_index.numel()

    @property
    def candidates(self) -> Tensor:
        """`[u]` nodes."""
        return self.graph.nodes[self.num_local : self.truth.numel()].long()

    def split(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of `values` of the `n` predicted nodes, and those of the `u` candidates."""
        return values[: self.num_local], values[self.num_local : self.truth.numel()]

    @property
    def is_padded(self) -> bool:
        """Whether its sizes are among a few fixed ones."""
        return any(block.valid_mask is not None for block in self.graph.blocks)


class BatchSpec(NamedTuple):
    """The nodes of one step, from which a process samples its batch."""

    predicted: Tensor
    """Predicted nodes of the step over all processes."""
    seeds: Tensor
    """`[n + u]` nodes that this process computes: predicted ones, then candidates. One that has no share of the step
    computes a node of another process, so that it is part of the step."""
    has_share: bool
    candidate_index: Tensor
    """`[u]`, as in `Batch`."""
    key: tuple[int, int]
    """Two 32-bit words."""


def tensors_of(item: object) -> list[Tensor]:
    """All tensors of a batch or another object of dataclasses and tuples, in the order of `map_tensors`."""
    # nothing is built anew: this is done in every step
    if isinstance(item, Tensor):
        return [item]
    if is_dataclass(item):
        return [tensor for part in fields(item) for tensor in tensors_of(getattr(item, part.name))]
    if isinstance(item, tuple | list):
        return [tensor for part in item for tensor in tensors_of(part)]
    return []


@dataclass(frozen=True, eq=False)
class BatchSampler:
    """Samples the steps of an epoch, this process's share of each.

    Batches are sampled on the device of the graph, and moved to the device of the model.
    """

    inference: LayerWise
    """Has the task, and makes the inputs of some of its nodes."""
    sampling: SamplingOptions
    generator: Generator
    ranks: Ranks
    hides_predicted: bool
    """Whether the predicted nodes show labels, which their own batch must not see."""
    pad: Callable[[SampledLabelGraph, BatchSpec], SampledLabelGraph] | None = None
    """Gives samples planned sizes; None to leave them as they are."""

    def batches(self, graph: LabelGraph, predicted: Tensor, candidates: Tensor, steps: int) -> Iterator[Batch]:
        """Yields `steps` batches that share out `predicted` `[P]` and `candidates` `[U]` in parts of nearly equal size.

        Candidates must show no labels in `graph`.
        """
        hides = self.hides_predicted and predicted.numel() > 0
        mean = None if hides else self.inference.class_mean(graph)

        def sample(spec: BatchSpec) -> Batch:
            if not hides:
                return self._sample(graph, mean, spec)
            # the nodes of a batch show labels too: to all the others, not in their own batch
            masked = graph.hide(spec.predicted)
            return self._sample(masked, self.inference.class_mean(masked), spec)

        specs = self._specs(predicted, candidates, steps)
        if not self.inference.plan.streams:
            return map(sample, specs)
        return prefetch(sample, specs, self.inference.device, tensors_of)

    def _specs(self, predicted: Tensor, candidates: Tensor, steps: int) -> list[BatchSpec]:
        keys = torch.randint(2**32, (steps, 2), generator=self.generator).tolist()
        local = slice(self.ranks.rank, None, self.ranks.world_size)
        positions = torch.arange(candidates.numel(), device=candidates.device)
        parts = (values.tensor_split(steps) for values in (predicted, candidates, positions))
        specs = []
        for nodes, others, index, (low, high) in zip(*parts, keys, strict=True):
            seeds = torch.cat([nodes[local], others[local]])
            has_share = seeds.numel() > 0
            seeds = seeds if has_share else torch.cat([nodes, others])[:1]
            specs.append(BatchSpec(nodes, seeds, has_share, index[local], (low, high)))
        return specs

    def _sample(self, graph: LabelGraph, mean: Tensor | None, spec: BatchSpec) -> Batch:
        """The batch of a step; several threads call this."""
        device, seeds = self.inference.device, spec.seeds
        sampled = sample_label_graph(graph, seeds, self.sampling, spec.key)
        if self.pad is not None:
            sampled = self.pad(sampled, spec)
        sampled = replace(sampled, class_mean=mean)
        return Batch(
            self.inference.prepare(sampled.nodes),
            sampled if sampled.nodes.device == device else sampled.to(device),
            self.inference.task.y[seeds if spec.has_share else seeds[:0]].to(device, non_blocking=True),
            spec.candidate_index.to(device, non_blocking=True),
            spec.predicted.numel(),
        )
