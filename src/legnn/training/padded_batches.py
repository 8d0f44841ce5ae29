"""Mini-batches as CUDA graphs: batches padded to a few fixed sizes, and a captured step for each.

A step over a sample is hundreds of kernels of some microseconds each: launched one by one, a GPU waits for three
quarters of the time. Sizes depend on the graph and the settings alone, never on what was drawn before, so that a
resumed run pads as the first one did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from legnn.graph import LabelGraph, SampledLabelGraph, sample_label_graph
from legnn.graph.padded_sampling import sample_padded
from legnn.graph.padding import SampleSizes, pad_sample
from legnn.graph.sampling import Fanout
from legnn.ops.csr.adjacency import map_tensors
from legnn.ops.select import TRITON, kernels_for_device
from legnn.training.batches import Batch, Part, copy_tensors, tensors_of
from legnn.training.cuda_graph import CudaGraphs, Replay

PROBES = 8
"""Samples from whose sizes those of a run are planned."""
ROOM = (1.04, 1.2, 2.0)
"""Sizes are so many times the largest of these samples; a larger batch takes the next, or is not padded at all."""
SEED_MULTIPLE = 32
"""Batches whose numbers of seeds differ by less are planned alike: those of an epoch differ by one."""
MOST = 16
"""Captured steps that are kept; others run launch by launch."""

Probe = Callable[[int, int], Iterable[SampledLabelGraph]]
"""Samples of so many predicted nodes and candidates, always the same ones."""


Planned = dict[tuple[int, int], list[SampleSizes]]
"""Sizes by the numbers of predicted nodes and candidates, from the smallest."""


class Padding:
    """Plans the sizes of the samples of a run, which it adds to `planned` as they are needed."""

    def __init__(self, probe: Probe, planned: Planned) -> None:
        self._probe, self._planned = probe, planned
        self._lock = Lock()

    def plan(self, part: Part) -> list[SampleSizes]:
        """Sizes for the sample of a part, from the smallest."""
        num_predicted, num_candidates = part.num_planned
        key = _rounded(num_predicted), _rounded(num_candidates)
        # threads pad batches of the same epoch, and one of them plans
        with self._lock:
            if key not in self._planned:
                seen = [SampleSizes.of(sample) for sample in self._probe(*key)]
                self._planned[key] = [SampleSizes.above(seen, factor) for factor in ROOM]
            return self._planned[key]

    def sample(self, graph: LabelGraph, seeds: Tensor, fanouts: Sequence[Fanout], part: Part) -> SampledLabelGraph:
        """Returns the sample of `seeds` padded to the first planned sizes that hold it, or as it is."""
        planned = self.plan(part)
        bounded = [fanout for fanout in fanouts if fanout is not None]
        if kernels_for_device(seeds.device) is TRITON and len(bounded) == len(fanouts):
            padded = sample_padded(graph, seeds, bounded, part.key, planned)
            if padded is not None:
                return padded
        sample = sample_label_graph(graph, seeds, fanouts, part.key)
        size = SampleSizes.of(sample)
        for sizes in planned:
            if sizes.hold(size):
                return pad_sample(sample, sizes)
        return sample


def _rounded(count: int) -> int:
    return -(-count // SEED_MULTIPLE) * SEED_MULTIPLE


class _Captured(NamedTuple):
    """A step that reads its batch from tensors that keep their addresses."""

    batch: Batch
    tensors: list[Tensor]
    """Those of the batch."""
    replay: Replay


class CapturedSteps:
    """Takes steps on padded batches: one captured step for each size of batch, or for each slot."""

    def __init__(self, device: torch.device, *, enabled: bool) -> None:
        # threads that sample the next batches may synchronize: watching would take that for the step's
        self.graphs = CudaGraphs(device, enabled=enabled, watch=False)
        self._captured: dict[object, _Captured] = {}
        self._by_slot: WeakKeyDictionary[object, Replay] = WeakKeyDictionary()

    def run(self, batch: Batch, step: Callable[[Batch], Tensor]) -> Tensor:
        """Returns `step(batch)`, a tensor that the next step overwrites; `step` must not keep its batch."""
        if not self.graphs.enabled:
            return step(batch)
        if batch.slot is not None:
            # its tensors keep their addresses: nothing is copied
            if batch.slot not in self._by_slot:
                self._by_slot[batch.slot] = Replay(self.graphs)
            return self._by_slot[batch.slot].run(lambda: step(batch))
        # read outside of a capture, in the order in which a batch is built
        tensors = tensors_of(batch)
        key = (batch.num_predicted, *(tensor.shape for tensor in tensors))
        if key not in self._captured and len(self._captured) == MOST:
            return step(batch)
        if key not in self._captured:
            own = map_tensors(batch, torch.clone)
            self._captured[key] = _Captured(own, tensors_of(own), Replay(self.graphs))
        own, into, replay = self._captured[key]
        copy_tensors(into, tensors)
        # without what a step before cached of its graph
        return replay.run(lambda: step(map_tensors(own, _same)))


def _same(tensor: Tensor) -> Tensor:
    return tensor
