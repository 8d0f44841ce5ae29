"""Mini-batches sampled by CUDA graphs, ahead of the steps that train on them.

Sampling a batch launch by launch takes the host as long as a GPU takes to train on one. Samples of planned sizes are
drawn without synchronizing (`graph.padded_sampling`), so that sample and features of a batch are one launch. A few
batches have memory of their own, and are sampled in turn on a stream beside training: the host reads what was counted
of a sample before it launches the step on it, which by then is long since there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from legnn.graph import LabelGraph
from legnn.graph.padded_sampling import draw_padded_sample, has_room
from legnn.graph.padding import SampleSizes
from legnn.graph.sampling import rows_of
from legnn.ops.csr.adjacency import map_tensors
from legnn.ops.sample.types import SamplingRows
from legnn.training.batches import Batch, Part, copy_tensors
from legnn.training.cuda_graph import CudaGraphs
from legnn.training.layer_wise import LayerWise

SLOTS = 3
"""Batches of each size that have memory: one is trained on while the next ones are sampled."""

_LABELS = "label_of", "class_rowptr", "class_col"
"""What of `SamplingRows` changes from epoch to epoch."""


class _Slot:
    """A batch in memory of its own, and the graph that samples it."""

    def __init__(self, device: torch.device, own: int, candidates: int, layers: int) -> None:
        self.seeds = torch.zeros(own + candidates, dtype=torch.long, device=device)
        self.rows = torch.zeros(candidates, dtype=torch.long, device=device)
        self.key = torch.zeros(2, dtype=torch.long, device=device)
        self.inputs = [*self.seeds.split([own, candidates]), self.rows, self.key]
        self.counts = torch.zeros(layers + 1, 4, dtype=torch.long, pin_memory=True)
        # they do not wait in a loop, which would take the time of a core
        self.sampled, self.trained = torch.cuda.Event(blocking=True), torch.cuda.Event()
        self.batch: Batch | None = None
        self.graph: torch.cuda.CUDAGraph | None = None


class _Launched(NamedTuple):
    part: Part
    slot: _Slot | None
    sizes: SampleSizes | None


class CapturedSampling:
    """Samples batches of the smallest planned sizes; one that does not fit them is left to another sampler.

    Its memory outlasts an epoch: labels and class means of each are copied to where captured kernels read them.
    """

    def __init__(self, inference: LayerWise, fanouts: Sequence[int | None], *, enabled: bool) -> None:
        device = inference.device
        bounded = [fanout for fanout in fanouts if fanout is not None]
        task = inference.task
        # other memory of the host is gathered by the host
        near = task.x.device.type == "cuda" or (device.type == "cuda" and task.x.is_contiguous() and task.x.is_pinned())
        can = near and task.y.device.type == "cuda" and len(bounded) == len(fanouts)
        self._inference, self._fanouts = inference, bounded
        self._stream = _sampling_stream(torch.cuda.current_stream(device)) if enabled and can else None
        self._graphs = CudaGraphs(device, enabled=enabled and can, watch=False, stream=self._stream)
        self._slots: dict[object, deque[_Slot]] = {}
        self._labels: tuple[SamplingRows, Tensor | None] | None = None
        self._scratch: Tensor | None = None

    @property
    def enabled(self) -> bool:
        """Whether batches are sampled here."""
        return self._graphs.enabled

    def batches(
        self,
        graph: LabelGraph,
        class_mean: Tensor | None,
        parts: Iterable[Part],
        sizes: Callable[[Part], SampleSizes],
        sample_again: Callable[[Part], Batch],
    ) -> Iterator[Batch]:
        """Yields the batch of each part, which the ones after the next overwrite.

        Args:
            graph: no seed of a part shows a label in it.
            sizes: those that the sample of a part is padded to if it fits them.
            sample_again: makes the batch of a part that does not fit.
        """
        assert self._stream is not None
        current = torch.cuda.current_stream(self._stream.device)
        current.wait_stream(self._stream)
        self._set_labels(graph, class_mean)
        self._stream.wait_stream(current)
        launched: deque[_Launched] = deque()
        try:
            for part in parts:
                launched.append(self._launch(part, sizes(part)))
                if len(launched) == SLOTS:
                    yield from self._take(launched.popleft(), sample_again)
            while launched:
                yield from self._take(launched.popleft(), sample_again)
        finally:
            # what it read is freed on this one
            current.wait_stream(self._stream)

    def _take(self, launched: _Launched, sample_again: Callable[[Part], Batch]) -> Iterator[Batch]:
        part, slot, sizes = launched
        if slot is None or sizes is None or slot.batch is None:
            yield sample_again(part)
            return
        slot.sampled.synchronize()
        if not has_room(sizes, slot.counts.tolist()):
            yield sample_again(part)
            return
        try:
            # without what a step before cached of its graph
            yield map_tensors(slot.batch, _same)
        finally:
            slot.trained.record(torch.cuda.current_stream(slot.seeds.device))

    def _launch(self, part: Part, sizes: SampleSizes) -> _Launched:
        if not part.has_share or not self.enabled:
            return _Launched(part, None, None)
        key = part.num_predicted, part.own.numel(), part.rows.numel(), sizes
        if key not in self._slots:
            self._slots[key] = deque(
                _Slot(self._inference.device, part.own.numel(), part.rows.numel(), len(self._fanouts))
                for _ in range(SLOTS)
            )
        slots = self._slots[key]
        slot = slots[0]
        slots.rotate(-1)
        assert self._stream is not None
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(slot.trained)
            copy_tensors(slot.inputs, part.inputs)
            if slot.graph is None and not self._capture(slot, part.num_predicted, sizes):
                return _Launched(part, None, None)
            assert slot.graph is not None
            slot.graph.replay()
            slot.sampled.record(self._stream)
        return _Launched(part, slot, sizes)

    def _capture(self, slot: _Slot, num_predicted: int, sizes: SampleSizes) -> bool:
        # kernels are compiled, and what is created once is created
        self._sample(slot, num_predicted, sizes)
        found: list[Batch] = []
        slot.graph = self._graphs.capture(lambda: found.append(self._sample(slot, num_predicted, sizes)))
        slot.batch = found[0] if slot.graph is not None else None
        return slot.graph is not None

    def _sample(self, slot: _Slot, num_predicted: int, sizes: SampleSizes) -> Batch:
        inference = self._inference
        assert self._labels is not None and self._scratch is not None
        rows, mean = self._labels
        graph, counts = draw_padded_sample(
            inference.task.graph, rows, slot.seeds, self._fanouts, slot.key, sizes, self._scratch
        )
        slot.counts.copy_(counts, non_blocking=True)
        truth = inference.task.y.index_select(0, slot.seeds)
        return Batch(
            inference.inputs(graph.nodes), graph.with_class_mean(mean), truth, slot.rows, num_predicted, place=slot
        )

    def _set_labels(self, graph: LabelGraph, class_mean: Tensor | None) -> None:
        """Copies what an epoch shows to where captured kernels read it."""
        rows = rows_of(graph)
        new = [getattr(rows, name) for name in _LABELS] + ([] if class_mean is None else [class_mean])
        if self._labels is not None:
            old, mean = self._labels
            into = [getattr(old, name) for name in _LABELS] + ([] if mean is None else [mean])
            if [one.shape for one in into] == [one.shape for one in new]:
                copy_tensors(into, new)
                return
        # the first epoch, or one that shows another number of labels: what was captured reads elsewhere
        self._slots.clear()
        kept = replace(rows, **{name: getattr(rows, name).clone() for name in _LABELS})
        self._labels = kept, None if class_mean is None else class_mean.clone()
        if self._scratch is None:
            self._scratch = torch.zeros(graph.num_nodes, dtype=torch.int32, device=self._inference.device)


def _same(tensor: Tensor) -> Tensor:
    return tensor


@lru_cache(None)
def _sampling_stream(current: torch.cuda.Stream) -> torch.cuda.Stream:
    """The same one in every run: PyTorch keeps memory for every stream that it has seen."""
    # short kernels, which training waits for, go before its long ones
    return torch.cuda.Stream(current.device, priority=-1)
