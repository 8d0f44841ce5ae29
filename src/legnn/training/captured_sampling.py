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
from legnn.graph.derived import copy_with_cache, fill_cache_like
from legnn.graph.padded_sampling import draw_padded_sample, has_room
from legnn.graph.padding import SampleSizes
from legnn.graph.sampling import Fanout, rows_of
from legnn.ops.sample.types import SamplingRows
from legnn.training.batches import Batch, Part, copy_tensors
from legnn.training.cuda_graph import CudaGraphs
from legnn.training.layer_wise import LayerWise

SLOTS = 3
"""Batches of each size that have memory: one is trained on while the next ones are sampled."""
MOST = 8
"""Numbers of predicted nodes and candidates for which sampling is captured."""

_LABELS = "label_of", "class_rowptr", "class_col"
"""What of `SamplingRows` changes from epoch to epoch."""


class _Slot:
    """A batch in memory of its own, and the graph that samples it."""

    def __init__(self, device: torch.device, own: int, candidates: int, layers: int) -> None:
        self.seeds = torch.zeros(own + candidates, dtype=torch.long, device=device)
        self.rows = torch.zeros(candidates, dtype=torch.long, device=device)
        self.key = torch.zeros(2, dtype=torch.long, device=device)
        self.inputs = [*self.seeds.split([own, candidates]), self.rows, self.key]
        self.counts = torch.zeros(layers + 1, 4, dtype=torch.long, pin_memory=device.type == "cuda")
        # they do not wait in a loop, which would take the time of a core
        self.sampled, self.trained = torch.cuda.Event(blocking=True), torch.cuda.Event()
        self.batch: Batch | None = None
        self.graph: torch.cuda.CUDAGraph | None = None


class _Launched(NamedTuple):
    part: Part
    slot: _Slot | None
    """None where it is sampled otherwise."""
    sizes: SampleSizes


class CapturedSampling:
    """Samples batches of the smallest planned sizes; one that does not fit them is left to another sampler.

    Its memory outlasts an epoch: labels and class means of each are copied to where captured kernels read them.
    """

    def __init__(self, inference: LayerWise, fanouts: Sequence[Fanout], *, enabled: bool) -> None:
        device, self._inference = inference.device, inference
        self._fanouts = [fanout for fanout in fanouts if fanout is not None]
        # none where it is not enabled: a group of runs would take that for a capture that failed
        self._graphs: CudaGraphs | None = None
        if enabled and device.type == "cuda" and len(self._fanouts) == len(fanouts):
            stream = _sampling_stream(torch.cuda.current_stream(device))
            self._graphs = CudaGraphs(device, watch=False, stream=stream)
        self._slots: dict[object, deque[_Slot]] = {}
        self._kinds: set[tuple[int, int]] = set()
        self._labels: tuple[SamplingRows, Tensor | None] | None = None
        self._scratch: Tensor | None = None

    def takes(self, parts: Iterable[Part]) -> bool:
        """Whether these batches are sampled here: edges, labels and features are where a GPU reads them."""
        task = self._inference.task
        if self._graphs is None or not self._graphs.enabled or not task.y.is_cuda:
            return False
        if not task.x.is_cuda and not (task.x.is_contiguous() and task.x.is_pinned()):
            # it is gathered by the host
            return False
        kinds = self._kinds | {(part.nodes.numel(), part.candidates.numel()) for part in parts}
        if len(kinds) > MOST:
            return False
        self._kinds = kinds
        return True

    def batches(
        self,
        graph: LabelGraph,
        class_mean: Tensor | None,
        parts: Iterable[tuple[Part, Tensor]],
        plan: Callable[[Part], list[SampleSizes]],
        sample_again: Callable[[Part], Batch],
    ) -> Iterator[Batch]:
        """Yields the batch of each part; what reads it must be launched before the next one is asked for.

        Args:
            graph: seeds show no label in it.
            parts: each with its key on the device.
            plan: sizes for the sample of a part, the smallest of which are used.
            sample_again: makes the batch of a part that does not fit these.
        """
        assert self._graphs is not None
        stream = self._graphs.stream
        current = torch.cuda.current_stream(stream.device)
        current.wait_stream(stream)
        self._set_labels(graph, class_mean)
        stream.wait_stream(current)
        launched: deque[_Launched] = deque()
        try:
            for part, key in parts:
                sizes = plan(part)[0]
                with torch.cuda.stream(stream):
                    launched.append(_Launched(part, self._launch(part, key, sizes, self._graphs), sizes))
                if len(launched) == SLOTS:
                    yield from self._take(launched.popleft(), sample_again)
            while launched:
                yield from self._take(launched.popleft(), sample_again)
        finally:
            # what it read is freed on this one
            current.wait_stream(stream)

    def _take(self, launched: _Launched, sample_again: Callable[[Part], Batch]) -> Iterator[Batch]:
        part, slot, sizes = launched
        if slot is not None:
            slot.sampled.synchronize()
        if slot is None or slot.batch is None or not has_room(sizes, slot.counts.tolist()):
            yield sample_again(part)
            return
        try:
            # a step caches what it derives: of the first batch that is to be known, of others it would be out of date
            graph = slot.batch.graph if slot.graph is None else copy_with_cache(slot.batch.graph)
            # the slot does not hold itself: a cycle is freed late
            yield slot.batch._replace(graph=graph, slot=slot)
        finally:
            slot.trained.record(torch.cuda.current_stream(slot.seeds.device))

    def _launch(self, part: Part, key: Tensor, sizes: SampleSizes, graphs: CudaGraphs) -> _Slot | None:
        """Launches sampling on the current stream, that of sampling."""
        if not part.has_share or not graphs.enabled:
            return None
        own, others, num_predicted = part.own.numel(), part.rows.numel(), part.nodes.numel()
        kind = num_predicted, own, others, sizes
        if kind not in self._slots:
            layers, device = len(self._fanouts), self._inference.device
            self._slots[kind] = deque(_Slot(device, own, others, layers) for _ in range(SLOTS))
        slot = self._slots[kind][0]
        self._slots[kind].rotate(-1)
        graphs.stream.wait_event(slot.trained)
        copy_tensors(slot.inputs, [part.own, part.own_candidates, part.rows, key])
        if slot.batch is None:
            # the first one launch by launch: what is compiled or created once is, and its step tells what it derives
            slot.batch = self._sample(slot, num_predicted, sizes)
        else:
            if slot.graph is None:
                self._capture(slot, sizes, graphs)
            if slot.graph is None:
                return None
            slot.graph.replay()
        slot.sampled.record(graphs.stream)
        return slot

    def _capture(self, slot: _Slot, sizes: SampleSizes, graphs: CudaGraphs) -> None:
        first, found = slot.batch, list[Batch]()
        assert first is not None

        def sample() -> None:
            found.append(self._sample(slot, first.num_predicted, sizes))
            # beside training, and not in the step
            fill_cache_like(first.graph, found[0].graph)

        slot.graph = graphs.capture(sample, keeps=True)
        slot.batch = None if slot.graph is None else found[0]

    def _sample(self, slot: _Slot, num_predicted: int, sizes: SampleSizes) -> Batch:
        inference = self._inference
        assert self._labels is not None
        assert self._scratch is not None
        rows, mean = self._labels
        graph, counts = draw_padded_sample(
            inference.task.graph, rows, slot.seeds, self._fanouts, slot.key, sizes, self._scratch
        )
        slot.counts.copy_(counts, non_blocking=True)
        truth = inference.task.y.index_select(0, slot.seeds)
        return Batch(inference.inputs(graph.nodes), graph.with_class_mean(mean), truth, slot.rows, num_predicted)

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


@lru_cache(None)
def _sampling_stream(current: torch.cuda.Stream) -> torch.cuda.Stream:
    """The same one in every run: PyTorch keeps memory for every stream that it has seen."""
    # short kernels, which training waits for, go before its long ones
    return torch.cuda.Stream(current.device, priority=-1)
