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
from legnn.ops.csr.keyed_cache import map_tensors
from legnn.training.batches import Batch, BatchSpec, tensors_of
from legnn.training.cuda_graph import CapturedStep, GraphCapture

PROBES = 8
"""Samples from whose sizes those of a run are planned."""
SIZE_FACTORS = (1.04, 1.2, 2.0)
"""Sizes are so many times the largest of these samples; a larger batch takes the next, or is not padded at all."""
SEED_MULTIPLE = 32
"""Batches whose numbers of seeds differ by less are planned alike: those of an epoch differ by one."""
MAX_CAPTURED = 16
"""Steps that are captured; others run launch by launch."""


class Padding:
    """Plans the sizes of the samples of a run.

    Args:
        probe: returns samples of so many predicted nodes and candidates, always the same ones.
        planned: sizes by these numbers, from the smallest; those that are needed are added to it.
    """

    def __init__(
        self,
        probe: Callable[[int, int], Iterable[SampledLabelGraph]],
        planned: dict[tuple[int, int], list[SampleSizes]],
    ) -> None:
        self._probe, self._planned = probe, planned
        self._lock = Lock()

    def plan(self, spec: BatchSpec) -> list[SampleSizes]:
        """Sizes for the sample of a step, from the smallest."""
        number = spec.candidate_index.numel()
        predicted, candidates = (
            -(-count // SEED_MULTIPLE) * SEED_MULTIPLE for count in (spec.seeds.numel() - number, number)
        )
        # threads pad batches of the same epoch, and one of them plans
        with self._lock:
            if (predicted, candidates) not in self._planned:
                seen = [SampleSizes.from_sample(sample) for sample in self._probe(predicted, candidates)]
                self._planned[predicted, candidates] = [SampleSizes.padded(seen, factor) for factor in SIZE_FACTORS]
            return self._planned[predicted, candidates]

    def pad(self, sample: SampledLabelGraph, spec: BatchSpec) -> SampledLabelGraph:
        """Returns the sample padded to the first planned sizes that hold it, or as it is."""
        size = SampleSizes.from_sample(sample)
        fitting = (sizes for sizes in self.plan(spec) if sizes.fits(size))
        sizes = next(fitting, None)
        return sample if sizes is None else pad_sample(sample, sizes)


class _Captured(NamedTuple):
    """A step that reads its batch from tensors that keep their addresses."""

    batch: Batch
    tensors: list[Tensor]
    """Tensors of the batch."""
    step: CapturedStep


class StepsBySize:
    """Takes steps on padded batches: one captured step for each size of batch."""

    def __init__(self, device: torch.device, *, capture: bool) -> None:
        self._graphs = GraphCapture(device, enabled=capture)
        self._captured: dict[object, _Captured] = {}

    def run(self, batch: Batch, step: Callable[[Batch], Tensor]) -> Tensor:
        """Returns `step(batch)`, a tensor that the next step overwrites; `step` must not keep its batch."""
        if not self._graphs.enabled:
            return step(batch)
        # read outside of a capture, in the order in which a batch is built
        tensors = tensors_of(batch)
        key = (batch.num_predicted, *(tensor.shape for tensor in tensors))
        if key not in self._captured:
            if len(self._captured) == MAX_CAPTURED:
                return step(batch)
            copy = map_tensors(batch, torch.clone)
            self._captured[key] = _Captured(copy, tensors_of(copy), CapturedStep(self._graphs))
        captured = self._captured[key]
        for destination, tensor in zip(captured.tensors, tensors, strict=True):
            destination.copy_(tensor)
        # a new object: what a step before cached of its graph is of another batch
        return captured.step.run(lambda: step(map_tensors(captured.batch, lambda tensor: tensor)))
