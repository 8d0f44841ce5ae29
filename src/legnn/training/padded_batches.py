"""Mini-batches as CUDA graphs: batches padded to a few fixed sizes, and a captured step for each.

A step over a sample is hundreds of kernels of some microseconds each: launched one by one, a GPU waits for three
quarters of the time. Sizes depend on the graph and the settings alone, never on what was drawn before, so that a
resumed run pads as the first one did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import SampledLabelGraph
from legnn.graph.padding import SampleSizes, pad_sample
from legnn.ops.csr.adjacency import map_tensors
from legnn.training.batches import Batch, tensors_of
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
    """Pads the samples of a run to `planned` sizes, to which it adds as they are needed."""

    def __init__(self, probe: Probe, planned: Planned) -> None:
        self._probe, self._planned = probe, planned
        self._lock = Lock()

    def pad(self, sample: SampledLabelGraph, num_predicted: int, num_candidates: int) -> SampledLabelGraph:
        """Returns the sample padded to the first planned sizes that hold it, or as it is."""
        size = SampleSizes.of(sample)
        for planned in self._plan(num_predicted, num_candidates):
            if planned.hold(size):
                return pad_sample(sample, planned)
        return sample

    def _plan(self, num_predicted: int, num_candidates: int) -> list[SampleSizes]:
        key = _rounded(num_predicted), _rounded(num_candidates)
        # threads pad batches of the same epoch, and one of them plans
        with self._lock:
            if key not in self._planned:
                seen = [SampleSizes.of(sample) for sample in self._probe(*key)]
                self._planned[key] = [SampleSizes.above(seen, factor) for factor in ROOM]
            return self._planned[key]


def _rounded(count: int) -> int:
    return -(-count // SEED_MULTIPLE) * SEED_MULTIPLE


class _Captured(NamedTuple):
    """A step that reads its batch from tensors that keep their addresses."""

    batch: Batch
    tensors: list[Tensor]
    """Those of the batch."""
    replay: Replay


class CapturedSteps:
    """Takes steps on padded batches: one captured step for each size of batch."""

    def __init__(self, device: torch.device, *, enabled: bool) -> None:
        # the thread that samples the next batches synchronizes all the time: watching would take that for the step's
        self.graphs = CudaGraphs(device, enabled=enabled, watch=False)
        self._captured: dict[object, _Captured] = {}

    def run(self, batch: Batch, step: Callable[[Batch], Tensor]) -> Tensor:
        """Returns `step(batch)`, a tensor that the next step overwrites; `step` must not keep its batch."""
        # read outside of a capture, in the order in which a batch is built
        tensors = tensors_of(batch)
        key = (batch.num_predicted, *(tensor.shape for tensor in tensors))
        if not self.graphs.enabled or (key not in self._captured and len(self._captured) == MOST):
            return step(batch)
        if key not in self._captured:
            own = map_tensors(batch, torch.clone)
            self._captured[key] = _Captured(own, tensors_of(own), Replay(self.graphs))
        own, into, replay = self._captured[key]
        copy_tensors(into, tensors)
        # without what a step before cached of its graph
        return replay.run(lambda: step(map_tensors(own, _same)))


def copy_tensors(into: list[Tensor], values: list[Tensor]) -> None:
    """Copies tensors of the same shapes, with one launch for each dtype."""
    by_dtype: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
    for to, value in zip(into, values, strict=True):
        if to.numel():
            mine, theirs = by_dtype.setdefault(to.dtype, ([], []))
            mine.append(to)
            theirs.append(value)
    for mine, theirs in by_dtype.values():
        torch._foreach_copy_(mine, theirs)


def _same(tensor: Tensor) -> Tensor:
    return tensor
