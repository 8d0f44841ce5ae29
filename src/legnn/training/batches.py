"""Batches of an epoch: which nodes a step computes, and the sample of their neighbors that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Generator, Tensor

from legnn.graph import LabelGraph, SampledLabelGraph, sample_label_graph
from legnn.graph.padding import PaddedBlock
from legnn.graph.sampling import Fanout
from legnn.training.layer_wise import LayerWise
from legnn.training.prefetch import prefetch
from legnn.training.ranks import Ranks

if TYPE_CHECKING:
    from legnn.training.padded_batches import Padding


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
            index = _drop_repeated(torch.cat([index, torch.randint(nodes.numel(), (2 * count,), generator=generator)]))
        index = index[:count]
    return nodes[index.to(nodes.device)]


def _drop_repeated(values: Tensor) -> Tensor:
    """`values` `[n]` in their order, each at its first place only."""
    ordered, place = values.sort(stable=True)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return values[place[is_first].sort().values]


class Batch(NamedTuple):
    """What a process reads in one step, on the device.

    Its seeds are `n` predicted nodes, then `u` candidates. Where it has neither, one seed of another process is in
    their place, which counts nowhere.
    """

    x: Tensor
    graph: SampledLabelGraph
    truth: Tensor
    """`[n + u]` the classes of the seeds, -1 where unknown."""
    rows: Tensor
    """`[u]` positions of the candidates among those of the epoch."""
    num_predicted: int
    """Predicted nodes of the step over all processes."""

    @property
    def num_candidates(self) -> int:
        """`u`."""
        return self.rows.numel()

    @property
    def num_own(self) -> int:
        """`n`."""
        return self.truth.numel() - self.num_candidates

    @property
    def candidates(self) -> Tensor:
        """`[u]` nodes."""
        return self.graph.nodes[self.num_own : self.truth.numel()].long()

    def split(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """`[n, C]` and `[u, C]` of the logits of all seeds."""
        return logits[: self.num_own], logits[self.num_own : self.truth.numel()]

    @property
    def is_padded(self) -> bool:
        """Whether its sizes are among a few fixed ones."""
        return any(isinstance(block, PaddedBlock) for block in self.graph.blocks)


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

    Batches are sampled where the graph is kept, and moved to the device of the model.
    """

    inference: LayerWise
    """Has the task, and makes the inputs of some of its nodes."""
    fanouts: Sequence[Fanout]
    generator: Generator
    ranks: Ranks
    hides_predicted: bool
    """Whether the predicted nodes show labels, which their own batch must not see."""
    padding: Padding | None = None
    """Pads samples to fixed sizes; None to leave them as they are."""

    def batches(self, graph: LabelGraph, predicted: Tensor, candidates: Tensor, steps: int) -> Iterator[Batch]:
        """Yields `steps` batches that share out `predicted` `[P]` and `candidates` `[U]` in parts of nearly equal size.

        Candidates must show no labels in `graph`.
        """
        keys = torch.randint(2**32, (steps, 2), generator=self.generator).tolist()
        hides = self.hides_predicted and predicted.numel() > 0
        mean = None if hides else self.inference.class_mean(graph)
        positions = torch.arange(candidates.numel(), device=candidates.device)
        parts = zip(predicted.tensor_split(steps), positions.tensor_split(steps), keys, strict=True)

        def sample(part: tuple[Tensor, Tensor, list[int]]) -> Batch:
            nodes, every, key = part
            if not hides:
                return self._sample(graph, mean, nodes, candidates, every, key)
            # the nodes of a batch show labels too: to all the others, not in their own batch
            here = graph.hide(nodes)
            return self._sample(here, self.inference.class_mean(here), nodes, candidates, every, key)

        return prefetch(sample, parts, self.inference.device, tensors_of)

    def _sample(
        self, graph: LabelGraph, mean: Tensor | None, nodes: Tensor, candidates: Tensor, every: Tensor, key: list[int]
    ) -> Batch:
        """The batch of the predicted `nodes` and the candidates at the positions `every`; several threads call this."""
        device, mine = self.inference.device, slice(self.ranks.rank, None, self.ranks.world_size)
        rows = every[mine]
        seeds = torch.cat([nodes[mine], candidates[rows]])
        # a process without a share computes a seed of another, so that it takes part in the step
        computed = seeds if seeds.numel() else torch.cat([nodes, candidates[every]])[:1]
        low, high = key
        sampled = sample_label_graph(graph, computed, self.fanouts, (low, high))
        if self.padding is not None:
            sampled = self.padding.pad(sampled, computed.numel() - rows.numel(), rows.numel())
        sampled = sampled.with_class_mean(mean)
        return Batch(
            self.inference.inputs(sampled.nodes),
            # not by comparing devices: `cuda` and `cuda:0` differ
            sampled if sampled.nodes.device.type == device.type else sampled.to(device),
            self.inference.task.y[seeds].to(device, non_blocking=True),
            rows.to(device, non_blocking=True),
            nodes.numel(),
        )
